"""Live episodes: agents, the meter, the journal, collection, answers under a policy."""

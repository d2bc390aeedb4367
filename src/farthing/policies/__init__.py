"""From what was observed to what to do: scores of actions, by numpy alone."""

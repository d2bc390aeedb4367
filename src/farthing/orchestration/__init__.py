"""The live loop: agents that ask models, rounds, collection, and answers under a policy."""

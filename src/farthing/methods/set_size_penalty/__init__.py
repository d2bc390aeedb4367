"""Look-ahead with a price on each answer in the set."""

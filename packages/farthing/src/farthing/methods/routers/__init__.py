"""Which model of a pool to ask, in any order."""

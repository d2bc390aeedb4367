"""The tests and intervals that proofs rest on: pure functions of arrays."""

"""Variants of look-ahead for research: whole sequences, one model at a time."""

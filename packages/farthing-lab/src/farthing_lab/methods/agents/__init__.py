"""Agents under a budget: which of their steps may be taken, and what they are told of it."""

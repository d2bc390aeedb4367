"""Supervised stopping."""

"""Cascade routing."""

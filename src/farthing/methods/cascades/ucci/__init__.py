"""UCCI."""

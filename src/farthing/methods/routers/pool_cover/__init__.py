"""Pool cover."""

"""Pool gain."""

"""ODAR: how hard a question looks decides between one call, two, and six."""

"""The names of `ft.*` that the laboratory brings."""

"""Methods side by side, on many splits of the same questions."""

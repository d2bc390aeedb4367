"""Look-ahead: buy what gains most for its money."""

"""Look-ahead: buy what gains most for its money; in rounds, or call by call."""

"""Models in a fixed order, each asked when the one before it is not trusted."""

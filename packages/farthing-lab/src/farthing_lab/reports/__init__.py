"""Pages and tables of comparisons and of controllers."""

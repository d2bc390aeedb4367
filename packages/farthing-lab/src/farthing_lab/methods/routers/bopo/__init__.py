"""BoPO: at each step of a task a small or a large model, under a hard budget."""

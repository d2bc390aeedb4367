"""Methods that stop a thought: after each cut they say whether to think on."""

"""How likely a model is right on a question, from a handful of its outcomes."""

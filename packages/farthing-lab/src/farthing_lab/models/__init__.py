"""Language models that run in this process, and the weights that ship."""

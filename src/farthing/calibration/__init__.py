"""Arrays in, certificate out; no code here can see a model."""

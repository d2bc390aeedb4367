"""What is promised: operating points in, certificate out; no code here can see a model."""

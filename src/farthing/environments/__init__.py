"""The decision process over traces: replay, generators, and the Gymnasium view."""

"""One answer and how sure it is."""

"""Features that the laboratory adds to what a policy sees."""

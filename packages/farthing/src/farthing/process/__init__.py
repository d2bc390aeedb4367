"""What may happen to a question: states, action spaces, exact replay, the generator."""

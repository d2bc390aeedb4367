"""What a policy sees of a state: of rounds, of calls, of the question's text."""

"""One learner a file, over pure mathematics on arrays."""

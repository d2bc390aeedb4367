"""Questions: how answers are normalised, compared and graded."""

"""CORL from end to end: a pool, its best plans, training a controller, and what it comes to."""

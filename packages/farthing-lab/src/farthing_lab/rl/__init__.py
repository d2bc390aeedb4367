"""The mathematics of training by reinforcement, on arrays."""

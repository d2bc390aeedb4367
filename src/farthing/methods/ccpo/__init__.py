"""Conformal constrained policy optimisation."""

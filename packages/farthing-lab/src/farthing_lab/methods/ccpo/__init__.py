"""Conformal constrained policy optimisation: a network and its threshold, learned together."""

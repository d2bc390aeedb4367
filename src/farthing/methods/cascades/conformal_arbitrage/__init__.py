"""Conformal arbitrage."""

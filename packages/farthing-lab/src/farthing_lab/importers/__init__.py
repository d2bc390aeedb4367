"""Readers of published benchmarks of routers."""

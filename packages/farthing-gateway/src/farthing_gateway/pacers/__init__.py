"""Pacers that a gateway offers beside dual descent."""

"""Grades from people and judges: which are worth getting next, and what they come to."""

"""Trust or Escalate."""

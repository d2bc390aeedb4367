"""Made-up questions whose cheapest policy is known."""

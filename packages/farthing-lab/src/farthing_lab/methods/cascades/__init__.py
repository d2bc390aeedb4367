"""Published cascades: models in order of price, until an answer is good enough."""

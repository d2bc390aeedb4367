"""Language models small enough to train here: their symbols, their networks, their training."""

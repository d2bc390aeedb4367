"""The evidence cascade: a row of models, and every reply, silence, length and text decides."""

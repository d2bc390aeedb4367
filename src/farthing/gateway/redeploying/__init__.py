"""A bundle anew: the audits that may calibrate it, since when, and what it costs a day."""

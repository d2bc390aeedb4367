"""Train, calibrate and evaluate contenders over many splits of the same traces."""

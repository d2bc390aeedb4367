"""Train, calibrate and evaluate candidates over many splits of the same traces."""

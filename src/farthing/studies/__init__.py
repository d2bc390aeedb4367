"""Side studies: what a budget, memory, samples, parts or plans are worth, beside baselines."""

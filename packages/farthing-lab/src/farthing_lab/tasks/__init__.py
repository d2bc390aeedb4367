"""Tasks of benchmarks: their questions, their tools, which answers are the same."""

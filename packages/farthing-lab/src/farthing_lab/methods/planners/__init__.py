"""Who simulates before it acts: planners over any simulator of a decision process."""

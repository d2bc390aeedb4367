"""What is kept of requests: records, the texts that may be kept, traffic, draws for audits."""

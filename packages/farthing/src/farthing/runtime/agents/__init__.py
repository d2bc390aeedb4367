"""The agents: each kind is one file, with its fields in a job."""

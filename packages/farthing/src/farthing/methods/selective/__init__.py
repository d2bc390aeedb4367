"""One answer and how sure it is, for promises about the answers that are given."""

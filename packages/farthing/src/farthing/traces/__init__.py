"""What happened: one trace per question, as records, as files, as arrays."""

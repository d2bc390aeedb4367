"""Tables, plots and pages: what a comparison found, for people to read."""

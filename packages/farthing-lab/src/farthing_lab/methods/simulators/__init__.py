"""What plans are tried in: workflows of parts, and reasoning that a network writes."""

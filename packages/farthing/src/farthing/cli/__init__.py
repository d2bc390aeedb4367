"""One subcommand, one call into a room."""

"""Who may spend how much in a minute, a day, altogether; for many processes on one database."""

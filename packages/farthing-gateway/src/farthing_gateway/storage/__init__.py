"""The databases of a gateway: SQLite for one machine, PostgreSQL for several."""

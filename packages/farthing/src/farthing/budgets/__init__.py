"""Money that may be spent: reserved before a call, settled after it, never beyond the cap."""

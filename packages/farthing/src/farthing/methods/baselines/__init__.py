"""What every method is held against: lots, fixed depths, models that decide for themselves."""

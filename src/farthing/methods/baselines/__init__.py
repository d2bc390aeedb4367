"""What every method is held against."""

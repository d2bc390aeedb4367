"""What methods in rounds are measured against."""

"""Who answers what, where many questions are known at once and one budget pays for all."""

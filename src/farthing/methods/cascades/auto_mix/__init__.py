"""AutoMix."""

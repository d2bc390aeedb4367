"""The versions, each by its number; what one of them says stays as it is for good."""

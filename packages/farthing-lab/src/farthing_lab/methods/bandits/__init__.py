"""Cold start: whom to ask where nothing was recorded yet, learned from grades as they come."""

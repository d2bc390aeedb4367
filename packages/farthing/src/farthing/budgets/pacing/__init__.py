"""A day's budget that lasts the day: how much a dollar has to bring, request by request."""

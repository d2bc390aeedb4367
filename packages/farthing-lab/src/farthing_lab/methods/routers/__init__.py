"""Published routers: one choice of a model before any call."""

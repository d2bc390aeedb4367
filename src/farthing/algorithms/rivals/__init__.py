"""Published ways to spend less on a pool of models, one a file, each behind the same two calls."""

"""RouteLLM."""

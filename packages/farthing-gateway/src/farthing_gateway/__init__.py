"""The OpenAI-compatible server: who may ask, what they may spend, who answers, what is kept."""

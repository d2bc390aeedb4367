"""A controller: a language model that answers by itself, or calls others in free text."""

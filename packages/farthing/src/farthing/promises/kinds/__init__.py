"""One file a guarantee: its record, its proof, its words, and how it is checked again."""

"""The published methods: one file each, beside those of the core."""

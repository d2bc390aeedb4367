"""Side studies: one question about recorded or simulated work, one file each."""

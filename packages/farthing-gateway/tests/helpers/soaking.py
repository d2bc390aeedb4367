"""How long the suites of kills, deadlocks and faults run, as `make soak` says."""

import os

TIMES = int(os.environ.get("FARTHING_SOAK", "1"))
"""How many times as long as the shortest run that shows anything."""

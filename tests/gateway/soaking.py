"""How long the suites of kills, deadlocks and faults run: `make soak` makes them longer."""

import os

TIMES = int(os.environ.get("FARTHING_SOAK", "1"))
"""How many times as long as in `make check`."""

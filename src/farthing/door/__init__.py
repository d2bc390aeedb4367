"""The Python door: from recorded runs to a policy that keeps a promise, in a few lines.

Its names are also reachable as `farthing.NAME`; `docs/python.md` is the tour.
"""

from farthing.door.comparisons import compare
from farthing.door.policies import Policy, fit, load
from farthing.door.promises import Shift
from farthing.door.questions import Traces, from_records, generate, read_traces
from farthing.door.recommendations import recommend

__all__ = [
    "Policy",
    "Shift",
    "Traces",
    "compare",
    "fit",
    "from_records",
    "generate",
    "load",
    "read_traces",
    "recommend",
]

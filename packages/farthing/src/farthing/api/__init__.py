"""The Python door: from recorded runs to a policy that keeps a promise, in a few lines.

Its names are also reachable as `farthing.NAME`; `docs/how-to/python.md` is the tour.
"""

from farthing.api.policy import Policy, fit, load
from farthing.api.questions import Traces, from_records, read_traces, sample_log
from farthing.api.recommendation import recommend

__all__ = [
    "Policy",
    "Traces",
    "fit",
    "from_records",
    "load",
    "read_traces",
    "recommend",
    "sample_log",
]

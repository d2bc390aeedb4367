"""What a bandit asked, as traces: one call a question, with the probability of its draw."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from farthing.errors import InputError
from farthing.methods.bandits.base import Choice
from farthing.methods.bandits.off_policy import Log
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Trace

PROPENSITY, LEAST, FLOOR = "propensity", "least_propensity", "floor_propensity"
"""Names of the recorded numbers; features only for who asks for them by name."""


def recorded(
    traces: Iterable[Trace], ids: Sequence[str], choices: Sequence[Choice]
) -> Iterator[Trace]:
    """Yield the traces of the questions that were asked, with the call of the model that was drawn.

    Args:
        traces: with the calls of all models.
        ids: of the questions asked, in their order.
        choices: of those questions.
    """
    by_id = {trace.id: trace for trace in traces}
    for at, choice in zip(ids, choices, strict=True):
        trace = by_id[at]
        call = next(call for call in trace.calls if call.role == choice.name)
        drawn = {PROPENSITY: choice.propensity, LEAST: choice.least, FLOOR: choice.floor}
        numbers = {**call.extra, **drawn}
        yield msgspec.structs.replace(trace, calls=[msgspec.structs.replace(call, extra=numbers)])


def log_of(traces: TraceArrays) -> Log:
    """Return what such traces say of other policies, for `off_policy.value_of`.

    Raises:
        InputError: they were not drawn by a bandit: they lack propensities, or have several calls.
    """
    names = PROPENSITY, LEAST, FLOOR
    if lacking := [name for name in names if name not in traces.signals]:
        raise InputError(f"these traces have no `{lacking[0]}`; a bandit writes it with each call")
    made = traces.made[:, 0]
    if not (made.sum(axis=1) == 1).all():
        raise InputError("a record of a bandit has one call a question; these traces have others")
    at = np.arange(len(traces)), 0, made.argmax(axis=1)
    drawn, least, floor = (traces.signals[name][at].astype(np.float64) for name in names)
    return Log(
        made.argmax(axis=1),
        drawn,
        least,
        floor,
        traces.correct[at].astype(np.float64),
        np.ones(made.shape, dtype=bool),
    )

"""Questions graded by what a promise is about."""

from farthing.errors import InputError
from farthing.recommendation.partial_grades import needs_reference
from farthing.recommendation.promises import (
    Agreement,
    Budget,
    Parity,
    Promise,
    Selective,
)
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.grades.named import at_worst, check_graded, graded, reference_of, same_as


def read_for(
    asked: Promise, traces: TraceArrays, trained: str, *, by_lot: bool = False
) -> TraceArrays:
    """Return questions graded by what a promise is about.

    Args:
        asked: the promise.
        traces: the questions, as they were recorded.
        trained: the grade that the policy was trained by.
        by_lot: whether chance draws the questions that are graded, so that others need not be.

    Raises:
        InputError: the promise is about what is right, and nobody graded some answers.
        UnknownNameError: the reference is no role of the traces.
    """
    match asked:
        case Agreement():
            reference = asked.reference or reference_of(trained)
            if reference is None:
                raise InputError(
                    "agreement is with a reference; name it, one of " + ", ".join(traces.roles)
                )
            return graded(traces, same_as(reference))
        case Parity() if by_lot:
            return at_worst(traces, needs_reference(asked.reference, traces.roles))
        case Parity() if traces.ungraded.any():
            if asked.reference is None:
                check_graded(traces)
            return _at_worst(traces, asked.reference or "")
        case Budget():
            return traces
        case Selective() if by_lot:
            return traces
    check_graded(traces)
    return traces


def _at_worst(traces: TraceArrays, reference: str) -> TraceArrays:
    """Return questions at worst; where nobody graded any answer, that is the reference's grade."""
    if traces.ungraded[traces.answer != NO_ANSWER].all():
        return graded(traces, same_as(reference))
    return at_worst(traces, reference)

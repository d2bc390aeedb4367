"""Questions graded by what a promise is about."""

from farthing.promises.base import Promise
from farthing.promises.observed import Gradable
from farthing.promises.payload import Reads
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.grades.overlay import at_worst, check_graded, graded, reference_of, same_as


def read_for(
    asked: Promise, traces: TraceArrays, trained: str, *, by_lot: bool = False
) -> TraceArrays:
    """Return questions graded by what a promise is about; of cuts the last is its reference.

    Args:
        asked: the promise.
        traces: the questions, as they were recorded.
        trained: the grade that the policy was trained by.
        by_lot: whether chance draws the questions that are graded, so that others need not be.
    """
    if traces.cuts and asked.reference is None:
        asked = asked.beside(traces.roles[-1])
    return read(asked.reads(gradable(traces, trained, by_lot=by_lot)), traces)


def gradable(traces: TraceArrays, grade: str, *, by_lot: bool = False) -> Gradable:
    """Return what there is to grade questions by, beside a grade of them or of a policy."""
    ungraded = bool(traces.ungraded.any())
    nothing = ungraded and bool(traces.ungraded[traces.answer != NO_ANSWER].all())
    return Gradable(traces.roles, grade, reference_of(grade), by_lot, ungraded, nothing)


def read(by: Reads, traces: TraceArrays) -> TraceArrays:
    """Return questions graded in such a way."""
    if by.same_as is not None:
        return graded(traces, same_as(by.same_as))
    if by.at_worst is not None:
        return at_worst(traces, by.at_worst)
    if not by.ungraded:
        check_graded(traces)
    return traces

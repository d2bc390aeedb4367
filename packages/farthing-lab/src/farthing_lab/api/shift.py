"""A promise for another mix of questions, of which a sample is given."""

from farthing.api.questions import Traces, traces_of
from farthing.promises.levels import Level
from farthing.traces.arrays import TraceArrays
from farthing_lab.promises import weighted


def Shift(level: Level, target: Traces | TraceArrays) -> weighted.Shift:  # noqa: N802 - a promise's name
    """Ask for coverage in another mix of questions, which differs only in what round 1 shows.

    Args:
        level: the probability of being covered.
        target: a sample of that mix, of the kind that trained the policy; grades are not read.

    Raises:
        InputError: the level is no probability, or the target holds no questions.
    """
    if isinstance(target, TraceArrays):
        return weighted.Shift(level, target)
    return weighted.Shift(level, traces_of(target, "the questions of the new mix").arrays)

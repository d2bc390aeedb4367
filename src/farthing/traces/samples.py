"""Samples of one model: what voting is measured on, and what most commands cannot use."""

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import NO_ANSWER, BoolArray, IntArray, TraceArrays
from farthing.traces.trace_kind import CONTROLLER

NOT_SAMPLES = (
    "these traces are samples of one model: `farthing study samples` says how many to take, and "
    "`farthing traces info` describes them; this needs several models, or base and guide"
)


def is_samples(arrays: TraceArrays) -> bool:
    """Return whether these are several independent calls of one role a question."""
    alone = arrays.n_roles == 1 and arrays.horizon > 1 and arrays.roles != (CONTROLLER,)
    return alone and bool(arrays.independent.all())


def refuse_samples(arrays: TraceArrays) -> None:
    """Refuse samples where several models are needed.

    Raises:
        InputError: these are samples.
    """
    if is_samples(arrays):
        raise InputError(NOT_SAMPLES)


def leaders(answer: IntArray) -> IntArray:
    """Return the vote of the first k samples, k = 1 to K, [n, K]; of a tie, who led before.

    Args:
        answer: [n, K] codes of answers in the order of sampling; -1 is no answer and has no vote.

    >>> leaders(np.array([[0, 1, 1, 0, 1], [-1, 2, 0, 0, -1]]))
    array([[ 0,  0,  1,  1,  1],
           [-1,  2,  2,  0,  0]])
    """
    n, most = answer.shape
    rows, codes = np.arange(n), int(answer.max(initial=0)) + 2
    counts, found = np.zeros((n, codes), dtype=np.int64), np.zeros((n, most), dtype=np.int64)
    lead = np.full(n, NO_ANSWER)
    for k in range(most):
        given = answer[:, k]
        counts[rows, given] += 1
        counts[:, NO_ANSWER] = 0
        ahead = (given != NO_ANSWER) & (counts[rows, given] > counts[rows, lead])
        lead = np.where(ahead, given, lead)
        found[:, k] = lead
    return found


def sampled(arrays: TraceArrays) -> tuple[IntArray, BoolArray, IntArray]:
    """Return the answer, grade and cost in nano-dollars of each sample, three of [n, k].

    Raises:
        InputError: these are no samples.
    """
    if not is_samples(arrays):
        raise InputError(
            "these traces are no samples; record several independent answers of one model to each "
            'question: one role, rounds from 1 on, and "independent": true'
        )
    return (
        arrays.answer[:, :, 0].astype(np.int64),
        arrays.correct[:, :, 0],
        arrays.cost_nano[:, :, 0],
    )

"""Episodes of a controller as traces: which are sound, and how they are laid out."""

import numpy as np
import pytest

from farthing.errors import InputError, TraceFormatError
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.jsonl import decode, encode
from farthing.traces.pool import cascade, is_pool
from farthing.traces.trace_kind import recorded_rounds, shape_of


def call(number: int, role: str, answer: str | None = None, usd: float = 0.0) -> Call:
    return Call(round=number, role=role, answer=answer, cost_usd=usd)


def episode(*calls: Call, name: str = "q") -> Trace:
    return Trace(id=name, gold=["7"], calls=list(calls), truncated=True)


ASKED = episode(call(1, "controller"), call(1, "base", "7", 0.1), call(2, "controller", "7"))
ALONE = episode(call(1, "controller", "8", 0.2), name="r")


def test_a_controller_makes_it_an_episode_whoever_else_is_in_it() -> None:
    assert shape_of(ASKED) == shape_of(ALONE) == "controlled"
    assert [recorded_rounds(trace) for trace in (ASKED, ALONE)] == [2, 1]
    assert decode(encode(ASKED)) == ASKED


def test_episodes_of_any_length_stand_in_one_file() -> None:
    arrays = assemble([ASKED, ALONE])
    assert arrays.roles == ("base", "controller")
    assert arrays.answer.shape == (2, 2, 2)
    assert arrays.recorded.tolist() == [2, 1]
    assert np.argwhere(arrays.correct).tolist() == [[0, 0, 0], [0, 1, 1]]
    assert not arrays.independent.any()
    assert not is_pool(assemble([ALONE]))
    with pytest.raises(InputError, match="only a pool"):
        cascade(arrays)


@pytest.mark.parametrize(
    ("calls", "problem"),
    [
        ((call(2, "controller", "7"),), "round 1 is missing its controller"),
        ((call(1, "controller"), call(2, "small", "7")), "round 2 is missing its controller"),
        (
            (call(1, "controller"), call(1, "small", "7"), call(1, "large", "7")),
            "is an expert's of the same turn already",
        ),
        ((call(1, "controller"), call(1, "controller", "7")), "keep one"),
    ],
)
def test_what_is_no_episode_is_refused(calls: tuple[Call, ...], problem: str) -> None:
    with pytest.raises(TraceFormatError, match=problem):
        assemble([episode(*calls)])


def test_a_pool_stands_in_another_file() -> None:
    pool = Trace(id="p", gold=["7"], calls=[call(1, "small", "7")])
    with pytest.raises(TraceFormatError, match="one file for each shape"):
        assemble([ASKED, pool])

"""Who may be asked on which questions: masks and prices alone decide it."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, TooFewTracesError, UnknownNameError
from farthing.traces.arrays import NO_ANSWER, BoolArray, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, MissingBecause, Trace
from farthing.traces.eligibility import (
    MOST_SETS,
    SAME,
    STAY,
    asked_all,
    check_alike,
    common,
    draw_weights,
    eligible,
    only,
)

PRICES = {"a": 1e-6, "b": 2e-6, "c": 4e-6, "d": 8e-6}


def pool(made: BoolArray, because: MissingBecause | None = None) -> TraceArrays:
    """Return questions that some of the models were asked; every model costs its own price."""
    return assemble(
        [
            Trace(
                id=f"q{i}",
                calls=[
                    Call(round=1, role=role, answer="4", correct=True, cost_usd=usd)
                    for role, usd, was in zip(PRICES, PRICES.values(), row, strict=True)
                    if was
                ],
                missing_because=because,
            )
            for i, row in enumerate(made)
        ]
    )


masks = st.integers(0, 2**32 - 1).map(
    lambda seed: (
        np.random.default_rng(seed).random((40, 4))
        < np.random.default_rng(seed + 1).choice([0.3, 0.6, 0.9, 1.0], 4)
    )
)


def usable(made: BoolArray) -> BoolArray:
    """Make the dearest model answer every question, so that each has a call."""
    made = made.copy()
    made[:, 3] = True
    return made


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(made=masks)
def test_sets_are_nested_and_each_question_of_a_set_was_asked_of_all_its_models(
    made: BoolArray,
) -> None:
    made = usable(made)
    if not made[:, :3].any():
        return
    traces = pool(made, "chance")
    found = eligible(traces, "d")
    assert 1 <= len(found.sets) <= MOST_SETS
    for some in found.sets:
        assert "d" in some.roles
        places = [traces.roles.index(role) for role in some.roles]
        asked = traces.made[:, 0][:, places].all(axis=1)
        assert some.rows.tolist() == np.flatnonzero(asked).tolist()
    for smaller, larger in zip(found.sets, found.sets[1:], strict=False):
        assert set(smaller.roles) < set(larger.roles)
        assert set(larger.rows) < set(smaller.rows)
    assert set(found.left_out) == set(traces.roles) - set(found.sets[-1].roles)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(made=masks)
def test_models_join_as_a_walk_through_all_orders_says(made: BoolArray) -> None:
    """Of all orders of joining the one that, step by step, leaves most questions; then the rule."""
    made = usable(made)
    if not made[:, :3].any():
        return
    traces = pool(made, "chance")
    names = list(traces.roles)
    mask = traces.made[:, 0]

    def left(order: tuple[str, ...]) -> list[int]:
        chain = [names.index(name) for name in ("d", *order)]
        return [int(mask[:, chain[: k + 1]].all(axis=1).sum()) for k in range(len(chain))]

    best = max(
        permutations([name for name in names if name != "d"]),
        key=lambda order: [
            (n, -PRICES[name]) for n, name in zip(left(order)[1:], order, strict=True)
        ],
    )
    sizes, joined = left(best), ["d"]
    for k, name in enumerate(best, start=1):
        if not sizes[k] or (k > 1 and sizes[k] < STAY * sizes[k - 1]):
            break
        joined.append(name)
    found = eligible(traces, "d")
    assert set(found.sets[-1].roles) == set(joined)
    first = len(found.sets[0].roles) - 1
    assert sizes[first] >= SAME * sizes[1]


@settings(deadline=None, max_examples=50)
@given(made=masks, seed=st.integers(0, 2**16))
def test_no_answer_and_no_grade_decides_who_is_eligible(made: BoolArray, seed: int) -> None:
    made = usable(made)
    if not made[:, :3].any():
        return
    traces = pool(made, "chance")
    rng = np.random.default_rng(seed)
    answer = rng.integers(NO_ANSWER, 3, traces.answer.shape).astype(np.int16)
    other = replace(traces, answer=answer, correct=(answer == 0) & traces.made)
    before, after = eligible(traces, "d"), eligible(other, "d")
    for one, two in zip(before.sets, after.sets, strict=True):
        assert (one.roles, one.rows.tolist()) == (two.roles, two.rows.tolist())


def test_one_rarely_asked_model_does_not_empty_the_proof() -> None:
    made = np.ones((100, 4), dtype=bool)
    made[8:, 0] = False
    found = eligible(pool(made), "d")
    assert [(some.roles, len(some.rows)) for some in found.sets] == [(("b", "c", "d"), 100)]
    assert found.left_out == {"a": 8}
    assert "left out, as too few questions would stay: a (asked 8 of these)" in found.notes()


def test_where_nobody_says_why_all_share_the_questions_of_the_largest_set() -> None:
    made = np.ones((100, 4), dtype=bool)
    made[70:, 0] = False
    cases: list[tuple[MissingBecause | None, list[int]]] = [
        (None, [70]),
        ("unknown", [70]),
        ("chance", [100, 70]),
    ]
    for because, sizes in cases:
        found = eligible(pool(made, because), "d")
        assert [len(some.rows) for some in found.sets] == sizes, because
    assert [len(some.rows) for some in eligible(pool(made), "d", "chance").sets] == [100, 70]


def test_recorded_probabilities_say_that_a_lot_decided() -> None:
    made = np.ones((100, 4), dtype=bool)
    made[70:, 0] = False
    traces = pool(made)
    drawn = np.where(np.arange(4) == 0, 0.7, np.nan).astype(np.float32)
    lot = replace(traces, asked_probability=np.broadcast_to(drawn, traces.made.shape))
    assert eligible(lot, "d").missing == "chance"
    assert eligible(traces, "d").missing == "unknown"


def test_a_reply_that_decided_is_refused_unless_the_worst_is_taken() -> None:
    made = np.ones((10, 4), dtype=bool)
    made[6:, 3] = False
    traces = pool(made, "earlier_reply")
    with pytest.raises(InputError, match="4 of 10 questions lack calls"):
        eligible(traces, "d")
    with pytest.raises(InputError, match="4 of 10 questions lack calls"):
        eligible(traces, "d", "chance")
    assert len(eligible(traces, "d", proving=False).sets[-1].rows) == 6
    found = eligible(traces, "d", "worst")
    assert (len(found.traces), found.traces.at_worst) == (6, True)
    with pytest.raises(InputError, match="name the reference"):
        eligible(traces, None, "worst")


def test_questions_of_one_model_each_have_nothing_in_common() -> None:
    traces = pool(np.eye(4, dtype=bool)[np.arange(40) % 4])
    for said in (None, "chance", "worst"):
        with pytest.raises(TooFewTracesError, match="none of the 10 questions that d answered was"):
            eligible(traces, "d", said)
    with pytest.raises(UnknownNameError):
        eligible(traces, "e")


def test_complete_questions_are_all_eligible_and_cut_ones_are_not() -> None:
    whole = pool(np.ones((10, 4), dtype=bool))
    found = eligible(whole, "d")
    assert (found.missing, found.left_out, found.notes()) == (None, {}, ())
    assert found.asked_of(found.sets[0], "d") is None
    taken, asked_of = common(whole, "d")
    assert taken is whole
    assert asked_of is None
    cut = replace(whole, recorded=np.where(np.arange(10) < 4, 0, 1).astype(np.int16))
    (some,) = eligible(cut, "d").sets
    assert some.rows.tolist() == [4, 5, 6, 7, 8, 9]


def test_other_models_calls_change_nothing_of_what_some_were_asked() -> None:
    made = np.random.default_rng(0).random((60, 4)) < 0.7
    made[:, 3] = True
    some, asked_of = asked_all(pool(made), ("b", "d"))
    other = made.copy()
    other[:, [0, 2]] = np.random.default_rng(1).random((60, 2)) < 0.5
    again, theirs = asked_all(pool(other), ("b", "d"))
    assert asked_of == theirs
    assert some.ids.tolist() == again.ids.tolist()
    assert some.roles == again.roles == ("b", "d")
    assert asked_of is not None
    assert (asked_of.questions, asked_of.recorded) == (len(some), 60)


def test_some_models_alone_keep_their_columns() -> None:
    traces = pool(np.ones((3, 4), dtype=bool))
    some = only(traces, ("d", "b"))
    assert (some.roles, some.models) == (("b", "d"), ("", ""))
    assert some.cost_nano.tolist() == [[[2000, 8000]]] * 3
    assert only(traces, traces.roles) is traces
    with pytest.raises(UnknownNameError):
        only(traces, ("x",))


def test_what_a_drawn_question_counts() -> None:
    """One lot of both, two lots, and none: p is 0.5, 0.5 times 0.25, and 1."""
    traces = pool(np.ones((3, 4), dtype=bool))
    drawn = np.full((3, 1, 4), np.nan, dtype=np.float32)
    drawn[0, 0, :2], drawn[1, 0, :2] = 0.5, (0.5, 0.25)
    weights = draw_weights(replace(traces, asked_probability=drawn))
    assert weights is not None
    np.testing.assert_allclose(weights, [0.25, 1.0, 0.125])
    with pytest.raises(InputError, match="drawn with different probabilities"):
        check_alike(replace(traces, asked_probability=drawn))
    alike = replace(traces, asked_probability=np.full((3, 1, 4), 0.5, dtype=np.float32))
    assert draw_weights(alike) is None
    assert draw_weights(traces) is None

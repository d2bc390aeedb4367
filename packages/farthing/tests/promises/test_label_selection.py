"""Which grades come next: by how much they can move the proof, against plain loops."""

from itertools import product

import numpy as np
import pytest

from farthing.errors import CalibrationError
from farthing.promises.paired import Paired, parity_p_values
from farthing.promises.statistics.label_selection import (
    RIGHT,
    UNKNOWN,
    WRONG,
    Partly,
    first_failure,
    grades_needed,
    next_to_grade,
)
from farthing.promises.statistics.paired_test import loss_p_value

MARKS = (RIGHT, WRONG, UNKNOWN)


def one(ours: int, theirs: int, same: bool) -> Partly:
    as_marks = np.array([[ours]], dtype=np.int8)
    return Partly(as_marks, np.array([theirs], dtype=np.int8), np.array([[same]]))


def test_the_worst_and_the_best_are_those_of_every_way_of_grading() -> None:
    for ours, theirs in product(MARKS, repeat=2):
        ways = [
            (t == RIGHT) - (o == RIGHT)
            for o, t in product((RIGHT, WRONG), repeat=2)
            if ours in (o, UNKNOWN) and theirs in (t, UNKNOWN)
        ]
        partly = one(ours, theirs, same=False)
        assert (partly.worst[0, 0], partly.best[0, 0]) == (max(ways), min(ways))
        alike = one(ours, theirs, same=True)
        assert (alike.worst[0, 0], alike.gain[0, 0]) == (0, 0)


def test_what_moves_the_tested_point_most_comes_first_and_then_what_matters_to_more() -> None:
    ours = np.array([[1, -1, 1], [-1, -1, -1], [1, 1, -1], [-1, -1, -1], [1, 1, 1]], dtype=np.int8)
    theirs = np.array([1, -1, 1, -1, 1], dtype=np.int8)
    same = np.zeros((5, 3), dtype=bool)
    same[3, 0] = True
    partly = Partly(ours, theirs, same)
    # Point 2 asks for questions 1 and 3, where both may win back two; 1 matters to two more points.
    assert next_to_grade(partly, 2).tolist() == [1, 3, 2]
    assert next_to_grade(partly, 1).tolist() == [1, 3, 0]


@pytest.mark.slow
def test_grading_in_that_order_never_makes_a_proof_worse_and_ends_where_all_are_graded() -> None:
    rng, n = np.random.default_rng(0), 200
    ours, theirs = rng.random((n, 2)) < [0.85, 0.9], rng.random(n) < 0.9
    same = rng.random((n, 2)) < [0.7, 0.8]
    ours = np.where(same, theirs[:, None], ours)
    known = np.zeros(n, dtype=bool)
    truth = Partly(ours.astype(np.int8), theirs.astype(np.int8), same)
    before = np.ones(2)
    for _ in range(n):
        partly = hidden(truth, ~known)
        now = p_values(partly)
        assert (now <= before + 1e-12).all() or before.max() > 0.5
        before = now
        queue = next_to_grade(partly, 1)
        if not queue.size:
            break
        known[queue[0]] = True
    assert p_values(hidden(truth, ~known))[1] == p_values(truth)[1]
    cost = np.ones((n, 2), dtype=np.int64)
    assert np.allclose(p_values(truth), parity_p_values(Paired(cost, ours, theirs), 0.05))


def hidden(truth: Partly, unknown: np.ndarray) -> Partly:
    ours = np.where(unknown[:, None], UNKNOWN, truth.ours).astype(np.int8)
    return Partly(ours, np.where(unknown, UNKNOWN, truth.theirs).astype(np.int8), truth.same)


def p_values(partly: Partly) -> np.ndarray:
    worst = partly.worst
    lost, won = (worst == 1).sum(axis=0), (worst == -1).sum(axis=0)
    n = len(worst)
    return np.array([loss_p_value(int(a), int(b), n, 0.05) for a, b in zip(lost, won, strict=True)])


@pytest.mark.slow
def test_the_estimate_of_grades_needed_is_near_what_it_takes() -> None:
    rng, n = np.random.default_rng(1), 300
    kind = rng.choice([1, 0, -1], n, p=[0.3, 0.35, 0.35])  # loss, neither, win
    same = rng.random((n, 1)) < 0.7
    theirs = np.where(kind == -1, WRONG, RIGHT).astype(np.int8)
    ours = np.where(kind == 1, WRONG, RIGHT).astype(np.int8)[:, None]
    truth = Partly(np.where(same, theirs[:, None], ours).astype(np.int8), theirs, same)
    known = np.zeros(n, dtype=bool)
    guesses, graded = [], 0
    while True:
        partly = hidden(truth, ~known)
        guesses.append(grades_needed(partly, 0, lambda a, b: loss_p_value(a, b, n, 0.05), 0.1))
        if p_values(partly)[0] <= 0.1:
            break
        known[next_to_grade(partly, 0)[0]] = True
        graded += 1
    assert guesses[-1] == 0
    after_ten = guesses[10]
    assert after_ten is not None
    assert 0.5 * (graded - 10) < after_ten < 2 * (graded - 10)


def test_where_not_even_all_grades_would_do_none_is_the_estimate() -> None:
    n = 100
    ours = np.zeros((n, 1), dtype=np.int8)
    theirs = np.ones(n, dtype=np.int8)
    lost = Partly(ours, theirs, np.arange(n)[:, None] >= 30)
    assert grades_needed(lost, 0, lambda a, b: loss_p_value(a, b, n, 0.05), 0.1) is None


def test_testing_ends_at_the_first_failure_from_the_dearest_on() -> None:
    assert first_failure(np.array([0.01, 0.5, 0.01, 0.01]), 0.1) == 1
    assert first_failure(np.array([0.5, 0.5, 0.5]), 0.1) == 2


def test_other_shapes_are_refused() -> None:
    marks = np.ones((3, 2), dtype=np.int8)
    with pytest.raises(CalibrationError, match="one row a question"):
        Partly(marks, marks[:2, 0], marks == 1)

"""What a method comes to on its training questions is said by policies that have not seen them."""

from dataclasses import replace

import numpy as np
from made_up_pool import COST_NANO, asked_again, pool

from farthing.methods.baselines.models import AlwaysPolicy
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity
from farthing.recommendation.cross_fit import rehearsed, thresholds_of
from farthing.recommendation.played import PlayedPolicy, TrainingQuestions
from farthing.traces.arrays import IntArray, TraceArrays

SMALL, LARGE = (PlayedPolicy(AlwaysPolicy(place), "argmax") for place in (0, 2))
ONE = np.array([0.5])


def all_right(n: int) -> TraceArrays:
    """Return questions that all have right, but for the first, which large alone has."""
    arrays = pool(n)
    right = np.ones_like(arrays.correct)
    right[0, 0, :2] = False
    return replace(arrays, correct=right, answer=np.where(right, 0, 1).astype(np.int16))


def test_no_question_is_answered_by_a_policy_that_was_fitted_to_it() -> None:
    """Whoever has seen the first question asks small, and would lose it."""
    arrays = all_right(50)
    train = TrainingQuestions(arrays, arrays)
    seen: list[IntArray] = []

    def fit(rows: IntArray) -> PlayedPolicy:
        seen.append(rows)
        return SMALL if 0 in rows else LARGE

    found = rehearsed(fit, ONE, train, Parity("large"), seed=3)
    assert found.n == 50
    assert found.lost.tolist() == [0]
    held = [np.setdiff1d(np.arange(50), rows) for rows in seen]
    assert np.sort(np.concatenate(held)).tolist() == list(range(50))
    apart = next(len(rows) for rows in held if 0 in rows)
    spent = apart * COST_NANO[2] + (50 - apart) * COST_NANO[0]
    assert found.cost.tolist() == [spent / 50 / COST_NANO[2]]


def test_copies_are_left_out_together_and_count_once() -> None:
    arrays = asked_again(all_right(30), 3)
    train = TrainingQuestions(arrays, arrays)

    def fit(rows: IntArray) -> PlayedPolicy:
        both = np.intersect1d(
            arrays.content[rows], np.delete(arrays.content, rows), assume_unique=False
        )
        assert not both.size
        return SMALL

    found = rehearsed(fit, ONE, train, Parity("large"), seed=0)
    assert (found.n, found.lost.tolist()) == (30, [1 / 30])


def test_points_of_the_same_rank_are_the_same() -> None:
    arrays = all_right(20)
    train = TrainingQuestions(arrays, arrays)
    found = rehearsed(lambda _: LARGE, np.array([0.9, 0.5, 0.1]), train, Parity("large"), seed=0)
    assert found.cost.tolist() == [1, 1, 1]
    assert thresholds_of(LARGE, train).tolist() == thresholds_of(SMALL, train).tolist()


def test_of_agreement_every_answer_that_differs_is_lost() -> None:
    arrays = all_right(20)
    same = replace(arrays, correct=np.ones_like(arrays.correct))
    same.correct[:3, 0, 0] = False
    train = TrainingQuestions(same, same)
    found = rehearsed(lambda _: SMALL, ONE, train, Agreement("large"), seed=0)
    assert (found.lost.tolist(), found.won.tolist()) == ([3 / 20], [0])

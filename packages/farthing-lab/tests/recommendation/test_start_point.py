"""Where proofs of parity and agreement begin, by hand: single models beside the dearest."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from made_up_pool import pool
from question_parts import proof_of
from sure_policy import bundled

from farthing.methods.base import Dataset
from farthing.methods.baselines.models import BestSinglePolicy
from farthing.methods.cards import card
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity, ParityPromise
from farthing.recommendation import candidates
from farthing.recommendation.played import PlayedPolicy, Questions
from farthing.recommendation.start_point import Beginning, beginning
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan

ONE_EACH = BestSinglePolicy(np.arange(3.0))
"""Its operating points are the models, small, medium and large, and large again at 0."""


def right(*shares: float, n: int = 300) -> Questions:
    """Return questions of which each model has such a share right, evenly spread."""
    marks = np.stack([np.arange(n) % 100 < 100 * share for share in shares], axis=1)
    traces = replace(pool(n), correct=marks[:, None])
    return Questions(traces, traces)


def begun(asked: Parity | Agreement, train: Questions) -> Beginning:
    return beginning(asked, PlayedPolicy(ONE_EACH, "allow", None), train, "large", 300)


PARITY = Parity("large", Fraction(1, 20))


@pytest.mark.slow
def test_where_training_flatters_the_cheap_model_testing_begins_at_a_dearer_one() -> None:
    """Small is right most often in training alone: begun there, nothing would be proved."""
    train, prove = right(1.0, 0.99, 0.98), right(0.5, 0.98, 0.98)
    assert begun(PARITY, train).start == 1
    found = proof_of(PARITY, bundled(ONE_EACH, train), train, prove, None).certificate
    assert isinstance(found.promise, ParityPromise)
    assert (found.promise.point, found.promise.points) == (1, 2)


def test_where_dearer_models_lose_testing_begins_at_one_that_does_not() -> None:
    """Begun at medium the first test would fail, and small would not be tested."""
    train = right(0.98, 0.5, 0.98)
    assert begun(PARITY, train).start == 0
    found = proof_of(PARITY, bundled(ONE_EACH, train), train, train, None).certificate
    assert isinstance(found.promise, ParityPromise)
    assert found.promise.point == 0


def test_one_that_costs_as_much_as_the_reference_is_begun_at_only_where_it_may_win() -> None:
    train = right(0.98, 0.98, 0.98)
    assert begun(PARITY, train).start == 1
    assert begun(Parity("large", Fraction(-1, 100)), train).start == 3
    plays = PlayedPolicy(ONE_EACH, "allow", None)
    saw_others = Questions(
        replace(train.played, independent=np.zeros(300, dtype=bool)), train.played
    )
    for part, start in ((train, 0), (saw_others, 3)):  # nothing is cheaper than small by itself
        assert beginning(PARITY, plays, part, "small", 300).start == start


def test_agreement_counts_every_answer_that_differs() -> None:
    """By parity what is wrong on the questions that large has wrong loses nothing."""
    train = right(0.7, 0.7, 0.7)
    assert begun(PARITY, train).lost.sum() == 0
    assert begun(Agreement("large"), train).lost.sum(axis=0).tolist() == [90, 90, 90, 90]


def test_the_rows_of_named_policies_end_in_the_reference_as_all_others_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Medium is right most often in training: a row that ended in it would be beside the point."""
    monkeypatch.setattr(candidates, "cards", lambda: [card("agreement-cascade"), card("always")])
    traces = pool(600)
    best = traces.correct.copy()
    best[:200, 0, 1] = True
    split = np.repeat([0, 1, 2], 200).astype(np.int8)
    dataset = Dataset("pool", replace(traces, correct=best, split=split))
    asked = Parity("large", Fraction(1, 20))
    named, every = (
        compare(dataset, Plan((Fraction(1, 10),), policies, 5, workers=1, promise=asked))
        for policies in (("agreement-cascade",), None)
    )
    (ours,) = named.rows
    theirs = next(row for row in every.rows if row.policy == ours.policy)
    assert ours.per_split == theirs.per_split
    assert ours.frontier == theirs.frontier

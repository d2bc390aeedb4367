"""A weighted vote of all models against Bayes' rule, by enumeration of which answer is right."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.methods.base import Silent
from farthing.methods.baselines.models import AlwaysAllLearner, AlwaysAllPolicy
from farthing.methods.pool import possible_answers
from farthing.methods.scorer import Scorers
from farthing.traces.arrays import NO_ANSWER, TraceArrays

COUNTED, WEIGHED = 0, 1
"""Operating points."""


def pool(answer: np.ndarray, right: int = 0) -> TraceArrays:
    """Return questions without signals; [n, L] answers, of which one code is right."""
    n, models = answer.shape
    names = tuple(f"agent-{k}" for k in range(models))
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=names,
        models=names,
        answer=answer[:, None].astype(np.int16),
        correct=(answer == right)[:, None],
        cost_nano=np.ones((n, 1, models), dtype=np.int64),
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def drawn(n: int, skill: list[float], answers: int, seed: int) -> TraceArrays:
    """Return questions on which 0 is right and all wrong answers are as likely."""
    rng = np.random.default_rng(seed)
    shape = n, len(skill)
    return pool(np.where(rng.random(shape) < skill, 0, rng.integers(1, answers, shape)))


def taught(train: TraceArrays) -> AlwaysAllPolicy:
    policy = AlwaysAllLearner().fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, AlwaysAllPolicy)
    return policy


def of_skill(skill: np.ndarray, answers: float) -> AlwaysAllPolicy:
    none = np.zeros((0, len(skill)))
    scorers = Scorers((), none, none, np.log(skill / (1 - skill))[None])
    return AlwaysAllPolicy(scorers, len(skill), np.array([0.0, 1.0]), answers)


def test_agreement_counts_for_an_answer_of_agents_that_are_mostly_wrong() -> None:
    policy = taught(drawn(400, [0.45] * 7, 50, seed=1))
    three_agree = pool(np.array([[0, 1, 2, 0, 3, 4, 0], [5, 0, 0, 6, 0, 7, 8]]))
    assert policy.points(three_agree).correct[:, WEIGHED].all()


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.integers(1, 7))
def test_the_likeliest_answer_that_was_heard_wins(seed: int, answers: int, models: int) -> None:
    rng = np.random.default_rng(seed)
    skill = rng.uniform(0.02, 0.98, models)
    said = rng.integers(0, answers, (30, models))
    said[rng.random(said.shape) < 0.1] = NO_ANSWER
    chance = np.ones((30, answers))
    for i, truth in np.ndindex(chance.shape):
        for model, answer in enumerate(said[i]):
            wrong = (1 - skill[model]) / (answers - 1)
            if answer != NO_ANSWER:  # silence is as likely whatever the truth is
                chance[i, truth] *= skill[model] if answer == truth else wrong
    given_one = np.zeros(30, dtype=int)
    for code in range(answers):
        points = of_skill(skill, answers).points(pool(said, right=code))
        for i in np.flatnonzero(points.correct[:, WEIGHED]):
            heard = chance[i, said[i][said[i] != NO_ANSWER]]
            assert chance[i, code] == pytest.approx(heard.max(), rel=1e-9)
            given_one[i] += 1
    np.testing.assert_array_equal(given_one, (said != NO_ANSWER).any(axis=1))


def test_weighing_gains_on_counting_where_the_best_of_many_weak_agents_is_known() -> None:
    skill = [0.6, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1]
    policy = taught(drawn(600, skill, 40, seed=2))
    right = policy.points(drawn(4_000, skill, 40, seed=3)).correct
    gained = right[:, WEIGHED].astype(float) - right[:, COUNTED]
    assert gained.mean() > 3 * gained.std() / np.sqrt(len(gained))


@pytest.mark.parametrize("answers", [2, 4, 20])
def test_how_many_answers_are_possible_shows_in_how_often_wrong_ones_are_alike(
    answers: int,
) -> None:
    found = possible_answers(drawn(4_000, [0.3, 0.5, 0.4, 0.6], answers, seed=answers))
    assert found == pytest.approx(answers, rel=0.1)


def test_silence_and_ungraded_answers_are_no_wrong_answers() -> None:
    alike = np.array([[1, 1], [1, 1], [NO_ANSWER, NO_ANSWER], [1, 2]])
    traces = pool(alike)
    traces.ungraded[:2] = True
    assert possible_answers(traces) == pytest.approx(1 + (1 + 1) / 0.5)
    nothing = pool(np.zeros((5, 3), dtype=int))
    assert possible_answers(nothing) == pytest.approx(3)


def test_a_policy_saved_before_weighs_as_it_did() -> None:
    policy = of_skill(np.array([0.3, 0.45, 0.6]), 12.0)
    arrays, state = policy.to_state()
    again = AlwaysAllPolicy.from_state(arrays, state)
    assert again.answers == 12.0
    del state["answers"]
    before = AlwaysAllPolicy.from_state(arrays, state)
    agreed = pool(np.array([[0, 0, 1]]))
    assert again.points(agreed).correct[:, WEIGHED].all()
    assert not before.points(agreed).correct[:, WEIGHED].any()

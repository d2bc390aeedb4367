"""What every registered estimator keeps: probabilities, in any order, and outcomes count."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from item_responses import World, joiner, pool

from farthing import plugins
from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.methods.cards import system, systems
from farthing_lab.features.question import QuestionFeatures
from farthing_lab.methods.estimators.base import Estimator, OutcomeHistory, Success, log_loss

NAMES = plugins.names("estimators")
WORLD = World.drawn(1)
TRAIN = pool(WORLD, 500, 6, seed=2)
QUESTIONS = WORLD.questions(60, np.random.default_rng(3))[0]
NOTHING = OutcomeHistory(QuestionFeatures((), ()), np.zeros(0, dtype=bool))
every_estimator = pytest.mark.parametrize("name", NAMES)


@cache
def learned(name: str) -> Success:
    estimator: Estimator = system("estimator", name)
    return estimator.fit(TRAIN, 0)


def history(n: int, seed: int = 4) -> OutcomeHistory:
    return joiner(WORLD, n, np.random.default_rng(seed))[1]


@every_estimator
@pytest.mark.parametrize("n", [0, 1, 10, 300])
def test_it_gives_probabilities(name: str, n: int) -> None:
    p = learned(name).success(history(n), QUESTIONS)
    assert p.shape == (len(QUESTIONS),)
    assert p.dtype == np.float64
    assert ((p > 0) & (p < 1)).all()
    assert learned(name).success(history(n), QuestionFeatures((), ())).shape == (0,)


@every_estimator
def test_the_order_of_the_history_does_not_matter(name: str) -> None:
    found, known = learned(name), history(40)
    rng = np.random.default_rng(5)
    first = found.success(known, QUESTIONS)
    for _ in range(10):
        again = found.success(known.take(rng.permutation(40)), QUESTIONS)
        np.testing.assert_allclose(again, first, rtol=0, atol=1e-7)


@every_estimator
def test_a_question_is_estimated_alone(name: str) -> None:
    found, known = learned(name), history(25)
    every = found.success(known, QUESTIONS)
    for i in (0, 7, 59):
        alone = found.success(
            known, QuestionFeatures(QUESTIONS.text[i : i + 1], QUESTIONS.group[i : i + 1])
        )
        assert alone[0] == every[i]


@every_estimator
@pytest.mark.parametrize("n", [1, 10, 60])
def test_an_outcome_that_turns_out_right_speaks_for_its_question(name: str, n: int) -> None:
    """And of many questions the more are expected right, the more were."""
    found, known = learned(name), history(n)
    for i in range(0, n, 7):
        wrong, right = known.right.copy(), known.right.copy()
        wrong[i], right[i] = False, True
        asked = QuestionFeatures(known.asked.text[i : i + 1], known.asked.group[i : i + 1])
        low = found.success(OutcomeHistory(known.asked, wrong), asked)
        assert found.success(OutcomeHistory(known.asked, right), asked) > low
    bad = found.success(OutcomeHistory(known.asked, np.zeros(n, dtype=bool)), QUESTIONS).mean()
    good = found.success(OutcomeHistory(known.asked, np.ones(n, dtype=bool)), QUESTIONS).mean()
    assert bad < found.success(NOTHING, QUESTIONS).mean() < good


@every_estimator
def test_without_history_it_expects_a_model_as_the_others_are(name: str) -> None:
    share = learned(name).success(NOTHING, QuestionFeatures.of(TRAIN)).mean()
    assert share == pytest.approx(TRAIN.correct.mean(), abs=0.06)


@pytest.mark.slow
@every_estimator
def test_the_same_seed_learns_the_same(name: str) -> None:
    again = system("estimator", name).fit(TRAIN, 0).success(history(30), QUESTIONS)
    np.testing.assert_array_equal(again, learned(name).success(history(30), QUESTIONS))


@pytest.mark.slow
@every_estimator
def test_more_outcomes_are_better_than_none(name: str) -> None:
    """Over 20 models that join."""
    rng, lost = np.random.default_rng(6), []
    for _ in range(20):
        ability, known = joiner(WORLD, 200, rng)
        asked, z, _ = WORLD.questions(400, rng)
        right = rng.random(400) < WORLD.truth(ability, z)
        each = [known.take(np.arange(n)) for n in (0, 10, 200)]
        lost.append([log_loss(learned(name).success(one, asked), right) for one in each])
    none, some, many = np.mean(lost, axis=0)
    assert none > some > many


@pytest.mark.slow
@every_estimator
def test_an_ungraded_answer_is_no_outcome(name: str) -> None:
    """Its grade is not looked at, in training or as history."""
    unknown = np.zeros(TRAIN.correct.shape, dtype=bool)
    unknown[::3, 0, 1] = True
    one = replace(TRAIN, ungraded=unknown)
    other = replace(one, correct=np.where(unknown, ~TRAIN.correct, TRAIN.correct))
    estimator: Estimator = system("estimator", name)
    found = [estimator.fit(traces, 0).success(history(20), QUESTIONS) for traces in (one, other)]
    np.testing.assert_array_equal(found[0], found[1])
    assert len(OutcomeHistory.of(one, 1).right) == len(TRAIN) - unknown.sum()


@every_estimator
def test_what_cannot_be_learned_from_is_one_line(name: str) -> None:
    estimator: Estimator = system("estimator", name)
    fields = ("answer", "correct", "cost_nano", "ungraded", "largest_cost_nano", "made")
    twice: Any = {field: np.repeat(getattr(TRAIN, field), 2, axis=1) for field in fields}
    two = replace(TRAIN, **twice)
    cases = (
        (two, "pool"),
        (replace(TRAIN, question=None), "no text"),
        (replace(TRAIN, ungraded=np.ones_like(TRAIN.correct)), "no answer of m0 is graded"),
    )
    for traces, said in cases:
        with pytest.raises(InputError, match=said) as problem:
            estimator.fit(traces, 0)
        assert "\n" not in str(problem.value)
    with pytest.raises(InputError, match="60 questions have 2 outcomes"):
        OutcomeHistory(QUESTIONS, np.array([True, False]))


def test_every_card_says_what_it_is() -> None:
    found = [card for card in systems() if card.kind == "estimator"]
    assert {card.name for card in found} == set(NAMES) >= {"v0"}
    assert all(isinstance(plugins.load("estimators", name), SystemCard) for name in NAMES)

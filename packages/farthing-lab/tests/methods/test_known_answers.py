"""Trainings whose outcome follows from the problem: two questions, two rounds, one price.

The easy question is right in round 1; the hard one is right in round 2 alone. Answering the easy
one at once costs 1, and the hard one costs 1 + p where p is how far it goes on. Coverage of
3/4 = (1 + p) / 2 takes p = 1/2: a mean cost of 5/4. Coverage of 1/2 would cost 1.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from update_by_hand import critical

from farthing.methods.base import Silent
from farthing.process.batch_replay import followed
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo import learner as ccpo
from farthing_lab.methods.ccpo.learner import PUBLISHED, CcpoConfig, CpoConfig, CpoLearner
from farthing_lab.promises.online import OnlineThreshold
from farthing_lab.rl.actor_critic import Questions
from farthing_lab.rl.discount import Horizon
from farthing_lab.rl.soft_set import soft_paths
from farthing_lab.rl.trust_region import TrustRegion, probabilities

ALPHA = Fraction(1, 4)
KAPPA = 0.4


def easy_and_hard(copies: int) -> Questions:
    """Return copies of the two questions, by turns. An observation names question and round."""
    observations = np.tile(np.eye(4).reshape(2, 2, 4), (copies, 1, 1))
    right = np.zeros((2, 2, 2), dtype=bool)
    right[0, 0] = right[1, 1] = True
    n = 2 * copies
    return Questions(
        observations,
        np.ones((n, 2)),
        np.tile(right, (copies, 1, 1)),
        np.zeros((n, 2, 2), dtype=np.int64),
        np.ones(n, dtype=bool),
    )


def trained(config: CcpoConfig, updates: int) -> tuple[float, float]:
    """Return what going on takes of the easy and of the hard question, softly counted."""
    questions = easy_and_hard(5)
    training = ccpo._CcpoTraining(config, questions, ALPHA, seed=0)
    training.threshold = OnlineThreshold(kappa=KAPPA, step=1e-12)
    for _ in range(updates):
        training.update()
    pi = probabilities(training.parts.network, questions.observations[:2]).numpy()
    easy, hard = 1 / (1 + np.exp(-(pi[:, 0, -1] - KAPPA) / config.epsilon))
    return float(easy), float(hard)


@pytest.mark.slow
def test_ccpo_goes_on_just_as_far_as_its_promise_asks() -> None:
    easy, hard = trained(CcpoConfig(epsilon=0.02), 100)
    assert easy < 0.01
    assert hard == pytest.approx(2 * (1 - float(ALPHA)) - 1, abs=0.02)


@pytest.mark.slow
def test_as_published_the_two_right_answers_of_the_easy_question_pay_for_the_hard_one() -> None:
    """The leaf count is (2 + 0) / 2, above 3/4 already: it asks for no second round."""
    easy, hard = trained(replace(PUBLISHED, epsilon=0.1), 160)
    assert max(easy, hard) < 0.1


@pytest.mark.slow
def test_cpo_is_right_just_as_often_as_asked() -> None:
    questions = easy_and_hard(20)
    training = ccpo._CpoTraining(CpoConfig(batch=40), questions, ALPHA, seed=0)
    figures = [training.update() for _ in range(120)][60:]
    mean = {name: float(np.mean([f[name] for f in figures])) for name in figures[0]}
    assert mean["coverage"] == pytest.approx(1 - float(ALPHA), abs=0.03)
    assert mean["violation"] == pytest.approx(0, abs=0.03)
    assert mean["cost"] == mean["length"] == pytest.approx(1.25, abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(4, 5)])
def test_cpo_online_follows_the_questions_that_ccpo_meets(alpha: Fraction) -> None:
    """Step by step, with kappa* of the policy that ships; it hardly moves, so sets get empty."""
    train = generate(preset("mmlu-llama2-7b").config, 30, np.random.default_rng(0))
    config = CpoConfig(updates=40, region=TrustRegion(radius=1e-6))
    fitted = CpoLearner(config).fit(train, alpha, 3, Silent())
    questions = Questions.of(train, np.zeros((len(train), train.horizon, 1)))
    found = critical(followed(fitted.policy, train).scores, questions)
    met, kappa = np.random.default_rng([3, 0]), 0.2
    for t in range(1, 1 + config.updates):
        batch = met.choice(30, 10, replace=False)
        missed = np.mean([min(found[i], 1.0) < kappa for i in batch])
        kappa += 0.05 * t**-0.6 * (float(alpha) - missed)
    assert fitted.kappa == pytest.approx(kappa, abs=1e-9)


def near_and_far() -> Questions:
    """Return two questions, one right in round 2, which costs 4, one in round 3 for 0.4 and 7."""
    right = np.zeros((2, 3, 2), dtype=bool)
    right[0, 1] = right[1, 2] = True
    cost = np.array([[1.0, 4.0, 1.0], [1.0, 0.4, 7.0]])
    observations = np.tile(np.eye(6).reshape(2, 3, 6), (5, 1, 1))
    return Questions(
        observations,
        np.tile(cost, (5, 1)),
        np.tile(right, (5, 1, 1)),
        np.zeros((10, 3, 2), dtype=np.int64),
        np.ones(10, dtype=bool),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mastered", "threshold", "which"), [(1, 9.0, 1), (3, 9.0, 0), (1, 0.0, 0)]
)
def test_what_is_near_counts_first_and_in_the_end_all(
    mastered: int, threshold: float, which: int
) -> None:
    """Half are to be covered. At gamma 0.2 the far answer is cheaper, 0.08 + 0.28 to 0.8; in full
    the near one is, 4 to 7.4. A horizon that stays at one round, one that is whole, one that grows.
    """
    questions, kappa = near_and_far(), 0.25
    config = CcpoConfig(epsilon=0.05, discount="automatic")
    training = ccpo._CcpoTraining(config, questions, Fraction(1, 2), seed=0)
    training.horizon = Horizon(3, mastered, threshold=threshold)
    training.threshold = OnlineThreshold(kappa=kappa, step=1e-12)
    for _ in range(200):
        training.update()
    pi = probabilities(training.parts.network, questions.observations[:2])
    reach = soft_paths(pi)[0].numpy()
    assert (reach[0, 1] > kappa, reach[1, 2] > kappa) == (which == 0, which == 1)

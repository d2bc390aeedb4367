"""Proofs by a sample and a judge: valid at any time, whatever the judge says, and fewer labels."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.answers import Answers, selective_p_values, selective_point
from farthing.promises.certificate import FloatArray
from farthing.promises.paired import Paired, parity_p_values, parity_point
from farthing.promises.statistics.sampled_mean import (
    Sample,
    corrected,
    log_fortunes,
    more_needed,
    sampled_p_values,
)

RUNS, DELTA = 2_000, 0.1


def rare_enough(failures: int) -> bool:
    return bool(stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4)


def said_by_a_judge(rng: np.random.Generator, loss: FloatArray, errors: float) -> FloatArray:
    """Return the predictions of a judge all of whose errors hide a loss."""
    hidden = rng.random(loss.shape) < errors
    return np.where(hidden, 0.0, np.clip(loss, 0, 1))


def sample_of(
    rng: np.random.Generator, predicted: FloatArray, probability: float, judge: str | None = "mini"
) -> Sample:
    n = len(predicted)
    return Sample(predicted, rng.random(n) < probability, np.arange(n), probability, judge)


@pytest.mark.slow
@pytest.mark.parametrize("probability", [1.0, 0.3, 0.1])
@pytest.mark.parametrize(("loses", "wins"), [(0.05, 0.0), (0.15, 0.1), (0.08, 0.03)])
def test_a_judge_that_hides_losses_breaks_no_promise_of_parity(
    probability: float, loses: float, wins: float
) -> None:
    """At the edge: accuracy falls by epsilon exactly, and the judge hides a fifth of the losses.

    Whoever grades looks after each question, and stops as soon as there is a proof.
    """
    rng, epsilon, n = np.random.default_rng(0), 0.05, 400
    failures = 0
    for _ in range(RUNS):
        luck = rng.random((n, 1))
        lost, won = luck < loses, luck > 1 - wins
        predicted = said_by_a_judge(rng, lost.astype(float), 0.2)
        paired = Paired(
            np.ones((n, 1), dtype=np.int64),
            won,
            lost[:, 0],
            sample=sample_of(rng, predicted, probability),
        )
        failures += parity_point(paired, epsilon, DELTA) is not None
    assert rare_enough(failures)
    if probability == 1:
        assert failures > 0.02 * RUNS  # and not because nothing is ever proved


@pytest.mark.slow
@pytest.mark.parametrize("probability", [1.0, 0.3])
@pytest.mark.parametrize("errors", [0.0, 0.2, 1.0])
def test_a_judge_that_hides_wrong_answers_breaks_no_selective_promise(
    probability: float, errors: float
) -> None:
    rng, alpha, n = np.random.default_rng(1), 0.1, 400
    failures = 0
    for _ in range(RUNS):
        wrong = rng.random((n, 1)) < alpha
        answered = rng.random((n, 1)) < 0.7
        predicted = said_by_a_judge(rng, wrong.astype(float), errors)
        sample = sample_of(rng, predicted, probability)
        failures += selective_point(Answers(answered, ~wrong, sample=sample), alpha, DELTA) == 0
    assert rare_enough(failures)


@pytest.mark.slow
def test_a_false_point_behind_true_ones_is_proved_as_rarely() -> None:
    """Three points that depend on each other; the cheapest is at the edge."""
    rng, epsilon, n = np.random.default_rng(2), 0.05, 600
    chances = np.array([0.05, 0.02, 0.0])
    failures = proved = 0
    for _ in range(RUNS):
        lost = rng.random((n, 1)) < chances
        cost = np.tile(np.array([1, 2, 3]), (n, 1))
        predicted = said_by_a_judge(rng, lost.astype(float), 0.2)
        sample = sample_of(rng, predicted, 0.5)
        paired = Paired(cost, ~lost, np.ones(n, dtype=bool), sample=sample)
        found = parity_point(paired, epsilon, DELTA)
        failures += found == 0
        proved += found == 1
    assert rare_enough(failures)
    assert proved > 0.5 * RUNS


@dataclass(frozen=True)
class Until:
    """How many labels it takes until there is a proof, of questions without end."""

    probability: float
    judge_errs: float | None

    def labels(self, rng: np.random.Generator) -> int:
        n, alpha = 20_000, 0.1
        wrong = (rng.random((n, 1)) < 0.04).astype(float)
        errs = rng.random((n, 1)) < (self.judge_errs or 0.0)
        known = np.zeros_like(wrong) if self.judge_errs is None else np.abs(wrong - errs)
        sample = sample_of(rng, known, self.probability)
        terms = corrected(wrong, sample)[:, 0]
        reached = log_fortunes(terms, alpha, 1 / self.probability) >= -np.log(DELTA)
        assert reached.any()
        return int(sample.drawn[: int(np.argmax(reached)) + 1].sum())


@pytest.mark.slow
def test_a_good_judge_saves_labels_and_a_bad_one_costs_some() -> None:
    rng = np.random.default_rng(3)
    mean = {
        errs: np.mean([Until(1.0 if errs is None else 0.2, errs).labels(rng) for _ in range(100)])
        for errs in (None, 0.01, 0.2)
    }
    assert mean[0.01] < 0.75 * mean[None]
    assert mean[0.2] > mean[0.01]


def test_grades_may_come_in_any_order_and_be_looked_at_after_each() -> None:
    """What is not graded counts at worst, and no later grade makes a p-value larger."""
    rng, n = np.random.default_rng(4), 120
    for _ in range(20):
        lost = rng.random((n, 2)) < 0.03
        sample = sample_of(rng, said_by_a_judge(rng, lost.astype(float), 0.3), 0.5)
        sample = replace(sample, order=rng.permutation(n))
        counted = rng.random((n, 2)) < 0.9
        known = np.ones_like(lost)
        known[sample.drawn] = False
        before = sampled_p_values(np.where(known, lost, 1.0), counted, sample, 0.1)
        for row in rng.permutation(np.flatnonzero(sample.drawn)):
            known[row] = True
            now = sampled_p_values(np.where(known, lost, 1.0), counted, sample, 0.1)
            assert (now <= before + 1e-12).all()
            before = now


def test_the_fortune_is_that_of_twelve_gamblers_one_question_at_a_time() -> None:
    terms, mean, most = np.array([0.0, 2.0, 0.3, -1.0, 0.0]), 0.2, 2.0
    gamblers = np.ones(12)
    stakes = np.array([0.02 * (0.99 / 0.02) ** (k / 11) for k in range(12)]) / (most - mean)
    expected = []
    for term in terms:
        gamblers = gamblers * (1 - stakes * (term - mean))
        expected.append(gamblers.mean())
    assert np.allclose(np.exp(log_fortunes(terms, mean, most)), expected, rtol=1e-12)
    assert (gamblers > 0).all()


def test_a_fortune_that_does_not_grow_says_nothing_of_how_many_more_it_takes() -> None:
    """Terms that are the mean win and lose nothing; lower ones by so much a label, and so on."""
    assert more_needed(np.full(8, 0.3), np.ones(8, dtype=np.int64), 0.3, 1.0, DELTA) is None
    low, one = np.full(20, 0.1), np.ones(20, dtype=np.int64)
    grown = log_fortunes(low, 0.3, 1.0)[-1]
    more = more_needed(low, one, 0.3, 1.0, 1e-4)
    assert more == np.ceil((np.log(1e4) - grown) / (grown / 20))


def test_questions_that_are_not_answered_count_for_nothing() -> None:
    right = np.ones((80, 1), dtype=bool)
    none = Sample(np.zeros((80, 1)), np.ones(80, dtype=bool), np.arange(80), 1.0)
    some = np.arange(80)[:, None] < 50
    half = Sample(none.predicted[:50], none.drawn[:50], none.order[:50], 1.0)
    whole = selective_p_values(Answers(some, right, sample=none), "0.1")
    cut = selective_p_values(Answers(some[:50], right[:50], sample=half), "0.1")
    assert whole == pytest.approx(cut)
    assert selective_p_values(Answers(~some & ~right, right, sample=none), "0.1")[0] == 1.0


def test_what_was_not_drawn_is_not_read() -> None:
    rng, n = np.random.default_rng(5), 60
    sample = sample_of(rng, np.zeros((n, 1)), 0.5)
    cost, reference = np.ones((n, 1), dtype=np.int64), np.ones(n, dtype=bool)
    right = np.ones((n, 1), dtype=bool)
    other = right & sample.drawn[:, None]
    found = [
        parity_p_values(Paired(cost, r, reference, sample=sample), 0.1) for r in (right, other)
    ]
    assert found[0] == found[1]


def test_samples_that_are_none_are_refused() -> None:
    good = Sample(np.zeros((3, 1)), np.ones(3, dtype=bool), np.arange(3), 0.5)
    with pytest.raises(CalibrationError, match="one row a question"):
        replace(good, predicted=np.zeros((2, 1)))
    with pytest.raises(CalibrationError, match="probability 0"):
        replace(good, probability=0)
    with pytest.raises(CalibrationError, match="between 0 and 1"):
        replace(good, predicted=np.full((3, 1), -1.0))
    with pytest.raises(CalibrationError, match="every question once"):
        replace(good, order=np.array([0, 0, 2]))
    right = np.ones((3, 2), dtype=bool)
    with pytest.raises(CalibrationError, match="same questions"):
        Answers(right, right, sample=good)
    with pytest.raises(CalibrationError, match="same questions"):
        Paired(right * 1, right, right[:, 0], sample=good)

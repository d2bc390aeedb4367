import numpy as np
import pytest
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.parity import certify
from farthing.promises.paired import Paired, parity_p_values, parity_point
from farthing.promises.statistics.betting import mean_p_value

RUNS, N, EPSILON, DELTA = 2_000, 200, 0.02, 0.1
LOST = np.array([0.10, 0.06, 0.05, 0.03])
WON = np.array([0.02, 0.04, 0.05, 0.04])
"""Operating points from the cheapest: losses of 0.08, 0.02 (the edge), 0 and -0.01."""


def draw(rng: np.random.Generator, n: int = N) -> Paired:
    """Operating points that depend on each other: one number a question decides them all."""
    luck = rng.random((n, 1))
    lost, won = luck < LOST, luck > 1 - WON
    reference = (luck[:, 0] < 0.7) | (rng.random(n) < 0.5)
    reference |= lost.any(axis=1)
    reference &= ~won.any(axis=1)
    correct = (reference[:, None] & ~lost) | won
    return Paired(np.tile([10, 20, 30, 40], (n, 1)), correct, reference)


@pytest.mark.slow
def test_a_point_that_loses_too_much_is_as_rare_as_promised() -> None:
    rng = np.random.default_rng(0)
    chosen = [parity_point(draw(rng), EPSILON, DELTA) for _ in range(RUNS)]
    failures = sum(found in {0, 1} for found in chosen)
    assert stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-4
    assert sum(found is None for found in chosen) < RUNS * 0.5
    assert sum(found == 0 for found in chosen) < 20


@pytest.mark.slow
def test_the_edge_alone_is_proved_almost_as_often_as_allowed() -> None:
    rng = np.random.default_rng(1)
    samples = (draw(rng) for _ in range(RUNS))
    edge = sum(parity_p_values(paired, EPSILON)[1] <= DELTA for paired in samples)
    assert stats.binomtest(edge, RUNS, DELTA, alternative="greater").pvalue > 1e-4
    assert edge > 0.06 * RUNS


@pytest.mark.slow
def test_it_proves_more_than_betting_does() -> None:
    """In 400 samples of 300, for an operating point that is as good as the reference."""
    rng = np.random.default_rng(2)
    exact = betting = 0
    for _ in range(400):
        paired = draw(rng, 300)
        exact += parity_p_values(paired, EPSILON)[2] <= DELTA
        loss = paired.reference.astype(float) - paired.correct[:, 2]
        betting += mean_p_value((loss + 1) / 2, (1 + EPSILON) / 2, DELTA) <= DELTA
    assert exact > betting + 40


def test_the_p_values_count_losses_and_wins() -> None:
    reference = np.repeat([True, False], [100, 50])
    correct = np.stack([reference, ~reference], axis=1)
    paired = Paired(np.ones((150, 2), int), correct, reference)
    p_values = parity_p_values(paired, "0.05")
    assert p_values[0] < 0.02
    assert p_values[1] == 1


def test_testing_begins_at_the_dearest_and_takes_the_cheapest_proved() -> None:
    reference = np.ones(200, bool)
    correct = np.ones((200, 3), bool)
    cost = np.tile([10, 20, 30], (200, 1))
    assert parity_point(Paired(cost, correct, reference), 0.02, 0.1) == 0
    gap = correct.copy()
    gap[:50, 1] = False
    assert parity_point(Paired(cost, gap, reference), 0.02, 0.1) == 2
    gap[:50, 2] = False
    assert parity_point(Paired(cost, gap, reference), 0.02, 0.1) is None
    assert parity_point(Paired(cost[:, ::-1], correct, reference), 0.02, 0.1) == 2


def test_shapes_that_do_not_fit_are_refused() -> None:
    right = np.ones((3, 2), bool)
    with pytest.raises(CalibrationError, match="one row a question"):
        Paired(np.ones((3, 1), int), right, right[:, 0])
    with pytest.raises(CalibrationError, match="3 questions but the reference"):
        Paired(np.ones((3, 2), int), right, right[:2, 0])
    with pytest.raises(CalibrationError, match="must be arrays of bool"):
        Paired(np.ones((3, 2), int), right, np.ones(3))  # type: ignore[arg-type]


def test_a_point_can_be_proved_better_than_the_reference() -> None:
    """At epsilon 0 and below; the certificate says so and travels."""
    rng = np.random.default_rng(5)
    reference = rng.random(400) < 0.7
    better = reference | (rng.random(400) < 0.3)
    paired = Paired(np.ones((400, 1), dtype=np.int64), better[:, None], reference, role="gpt-4o")
    for epsilon, says in ((0, "is above gpt-4o's."), ("-0.02", "is above gpt-4o's plus 0.02.")):
        made = certify(paired, epsilon, 0.1, fingerprint="")
        assert made.sentence().endswith(says)
        assert "more are answered right" in made.plain_language()
        assert Certificate.from_json(made.to_json()) == made
        assert made.verify(paired) == []
    assert not certify(paired, "-0.3", 0.1, fingerprint="").promises
    for beyond in (-1, 1.0, "x"):
        with pytest.raises(CalibrationError, match="between -1 and 1"):
            certify(paired, beyond, 0.1, fingerprint="")


@pytest.mark.slow
def test_no_better_point_is_proved_better_more_often_than_promised() -> None:
    """As good as the reference, which is the edge of the hypothesis at epsilon 0."""
    rng = np.random.default_rng(6)
    proved = 0
    for _ in range(RUNS):
        luck = rng.random((N, 1))
        reference = (luck[:, 0] < 0.5) | (luck[:, 0] > 0.95)
        paired = Paired(np.ones((N, 1), dtype=np.int64), luck < 0.55, reference)
        proved += parity_point(paired, 0, DELTA) is not None
    assert stats.binomtest(proved, RUNS, DELTA, alternative="greater").pvalue > 1e-4
    assert proved > 0.05 * RUNS

"""Proofs per request: valid where the requests of one question are alike, whatever their number."""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.agreeing import Agreeing, Checks, agreement_point
from farthing.promises.certificate import FloatArray, IntArray
from farthing.promises.kinds import agreement, parity
from farthing.promises.paired import Paired, parity_point
from farthing.promises.statistics.clusters import (
    Clusters,
    clustered_interval,
    clustered_p_values,
    clustered_share,
    mean_loss,
)
from farthing.promises.statistics.sampled_mean import Sample

DELTA, RUNS = 0.1, 1_000


def rare_enough(failures: int) -> bool:
    return bool(stats.binomtest(failures, RUNS, DELTA, alternative="greater").pvalue > 1e-3)


@pytest.mark.slow
def test_every_outcome_of_six_questions_counted_out() -> None:
    """A question is asked once or three times; half of its requests lose, the margin exactly.

    The chance of a p-value of u or less is then u or less, for every u, summed over all outcomes.
    """
    kinds = [(1, 0.0), (1, 1.0), (3, 0.0), (3, 1.0)]  # times asked, and whether it loses
    found = []
    for drawn in product(kinds, repeat=6):
        size = [times for times, _ in drawn]
        loss = np.repeat([lost for _, lost in drawn], size)
        clusters = Clusters(np.repeat(np.arange(6), size), most=3)
        found.append(float(clustered_p_values(loss[:, None], clusters, 0.5)[0]))
    p_values = np.sort(found)
    chance = np.arange(1, len(found) + 1) / len(found)
    assert (chance <= p_values + 1e-9)[p_values < 1].all()
    assert p_values[0] < 0.2  # and not because it says nothing


def drawn(rng: np.random.Generator, n: int, *, often: float) -> tuple[IntArray, FloatArray]:
    """Return questions asked 1 or 9 times, [requests], and whether each request loses.

    One question in twenty loses, always; of those asked nine times another share does.
    """
    size = np.where(rng.random(n) < 0.2, 9, 1)
    loses = rng.random(n) < np.where(size == 9, often, 0.05)
    return np.repeat(np.arange(n), size), np.repeat(loses, size).astype(np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parity", "agreement"])
@pytest.mark.parametrize("often", [0.02, 0.05, 0.1])
def test_at_the_edge_a_promise_fails_as_rarely_as_it_says(kind: str, often: float) -> None:
    """Also where what is asked often is harder, or easier, than what is asked once."""
    rng = np.random.default_rng(0)
    margin = (0.8 * 0.05 + 0.2 * 9 * often) / (0.8 + 0.2 * 9)
    failures = naive = 0
    for _ in range(RUNS):
        question, loss = drawn(rng, 200, often=often)
        failures += proves(kind, loss, question, margin)
        naive += proves(kind, loss, np.arange(len(loss)), margin, most=1)
    assert rare_enough(failures)
    assert not rare_enough(naive)  # where each request is taken for a question


def proves(kind: str, loss: FloatArray, question: IntArray, margin: float, most: int = 9) -> bool:
    lost, clusters = loss[:, None] > 0, Clusters(question, most)
    cost, sure = np.ones(lost.shape, dtype=np.int64), np.ones(len(loss), dtype=bool)
    limit = Fraction(margin).limit_denominator(10**6)
    if kind == "parity":
        paired = Paired(cost, ~lost, sure, clusters=clusters)
        return parity_point(paired, limit, DELTA) is not None
    return (
        agreement_point(Agreeing(cost, ~lost, "large", clusters=clusters), limit, DELTA) is not None
    )


def test_it_proves_what_is_true_and_not_what_is_true_of_questions_alone() -> None:
    rng = np.random.default_rng(1)
    question, loss = drawn(rng, 600, often=0.0)
    assert proves("parity", loss, question, 0.05)
    question, loss = drawn(rng, 600, often=0.3)  # 10 % of questions, 22 % of requests
    assert not proves("parity", loss, question, 0.15)
    assert not proves("agreement", loss, question, 0.15)


def test_one_question_asked_once_is_one_bet_on_its_loss() -> None:
    stakes = np.geomspace(0.02, 0.99, 12)
    found = clustered_p_values(np.zeros((1, 1)), Clusters(np.array([4]), most=1), 0.2)
    # Z = 0 - 0.2, at most 0.8: a share s of the largest stake gains s * 0.2 / 0.8
    assert log(float(found[0])) == pytest.approx(-np.log(np.mean(1 + stakes * 0.25)))


def test_what_is_asked_more_often_than_any_before_counts_so_often() -> None:
    loss = np.array([1.0, 1, 1, 1, 0])
    clusters = Clusters(np.array([0, 0, 0, 0, 1]), most=2)
    assert clusters.totals(loss[:, None]).ravel().tolist() == [2, 0]
    assert mean_loss(loss, clusters) == pytest.approx(2 / 3)


@pytest.mark.slow
def test_the_interval_covers_as_often_as_it_says() -> None:
    rng, truth = np.random.default_rng(2), (0.8 * 0.05 + 0.2 * 9 * 0.2) / 2.6
    missed = 0
    for _ in range(100):
        question, loss = drawn(rng, 200, often=0.2)
        low, high = clustered_interval(loss, Clusters(question, 9), 0.05)
        assert low <= mean_loss(loss, Clusters(question, 9)) <= high
        missed += not low <= truth <= high
    assert stats.binomtest(missed, 100, 0.05, alternative="greater").pvalue > 1e-3


def test_a_certificate_says_what_counts_and_is_checked_again() -> None:
    question = np.repeat(np.arange(300), 2)
    same = np.ones((600, 1), dtype=bool)
    agreeing = Agreeing(same.astype(np.int64), same, "large", clusters=Clusters(question, 2))
    found = agreement.certify(agreeing, 0.05, 0.1, fingerprint="f")
    assert (found.n, found.requests) == (300, 600)
    assert str(found) == (
        "With confidence 0.9 in the draw of 300 distinct questions, the answer of the policy "
        "is the one that large would have given, with probability at least 0.95. It is "
        "about requests, here 600: a question counts as often as it is asked, 2 times at most."
    )
    assert "Distinct questions are independent draws" in found.conditional_on[-1]
    assert found.verify(agreeing) == []
    fewer = Agreeing(same.astype(np.int64), same, "large", clusters=Clusters(question // 2, 2))
    assert found.verify(fewer)[0] == "n is 300 in the certificate but 150 by this evidence"
    other = structs.replace(found, requests=500)
    assert other.verify(agreeing) == ["requests is 500 in the certificate but 600 by this evidence"]
    paired = Paired(same.astype(np.int64), same, same[:, 0], clusters=Clusters(question, 2))
    proved = parity.certify(paired, 0.05, 0.1, fingerprint="f")
    assert proved.verify(paired) == []
    assert "here 600" in str(proved)


def test_grades_of_a_sample_or_a_judge_are_refused() -> None:
    same = np.ones((4, 1), dtype=bool)
    cost, clusters = same.astype(np.int64), Clusters(np.arange(4), 1)
    sample = Sample(np.zeros((4, 1)), same[:, 0], np.arange(4), 1.0)
    for make in (
        lambda: Paired(cost, same, same[:, 0], sample=sample, clusters=clusters),
        lambda: Agreeing(cost, same, "large", checks=Checks("mini", 4, 0), clusters=clusters),
    ):
        with pytest.raises(CalibrationError, match="grades of the traces alone"):
            make()
    with pytest.raises(CalibrationError, match=r"^3 requests but questions of 4$"):
        Agreeing(cost[:3], same[:3], "large", clusters=clusters)
    with pytest.raises(CalibrationError, match="a largest count above 0"):
        Clusters(np.arange(4), 0)


def test_of_distinct_questions_only_the_possible_is_believed() -> None:
    """How often they were asked is known to the certificate alone; less than once each is false."""
    same = np.ones((300, 1), dtype=bool)
    agreeing = Agreeing(same.astype(np.int64), same, "large")
    found = agreement.certify(agreeing, 0.05, 0.1, fingerprint="f")
    assert structs.replace(found, requests=301).verify(agreeing) == []
    for few in (0, 299, 300):
        (said,) = structs.replace(found, requests=few).verify(agreeing)
        assert said == f"requests is {few} in the certificate but None by this evidence"


@pytest.mark.parametrize("delta", [0.05, 0.3])
def test_an_interval_errs_at_half_of_delta_at_either_end(delta: float) -> None:
    """At an end the test of it fails by half of delta, and a hair inside it does not."""
    question, loss = drawn(np.random.default_rng(4), 150, often=0.2)
    clusters, right = Clusters(question, 9), loss == 0
    low, high = clustered_interval(loss, clusters, delta)
    share, (least, most) = clustered_share(right, clusters, delta)
    yes, no = right.astype(np.float64), (~right).astype(np.float64)
    assert share == mean_loss(yes, clusters)
    for losses, end in ((loss, high), (-loss, -low), (yes, most), (no, 1 - least)):
        p_values = [
            float(clustered_p_values(losses[:, None], clusters, end + hair)[0])
            for hair in (1e-6, -1e-6)
        ]
        assert p_values[0] <= delta / 2 < p_values[1]
        assert p_values[1] < delta / 2 * 1.001

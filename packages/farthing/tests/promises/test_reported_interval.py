"""The interval of coverage that a certificate reports is that of the threshold that it sets."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from farthing.promises.certificate import Certificate, Population
from farthing.promises.kinds import pac as pacs
from farthing.promises.kinds import split as splits
from farthing.promises.kinds.pac import PacPromise
from farthing.promises.kinds.split import SplitPromise
from farthing.traces.arrays import FloatArray

Certify = Callable[[FloatArray, Population], Certificate]


def split(scores: FloatArray, population: Population) -> Certificate:
    return splits.certify(scores, "0.1", fingerprint="f", population=population)


def pac(scores: FloatArray, population: Population) -> Certificate:
    return pacs.certify(scores, "0.1", "0.05", fingerprint="f", population=population)


def made_of(certificate: Certificate) -> SplitPromise | PacPromise:
    assert isinstance(certificate.promise, SplitPromise | PacPromise)
    return certificate.promise


@pytest.mark.parametrize("population", ["all", "solvable"])
@pytest.mark.parametrize("n", [40, 61, 200, 1_000])
@pytest.mark.parametrize("certify", [split, pac])
def test_it_is_that_of_the_rank_counted_among_the_scores(
    certify: Certify, n: int, population: Population
) -> None:
    """Beta(n + 1 - k, k) by SciPy, where k is how many scores are at most the threshold."""
    rng = np.random.default_rng(n)
    scores = rng.random(n)
    unsolvable = np.full(n // 4, np.inf)
    made = certify(np.concatenate([scores, unsolvable]), population)
    seen = n if population == "solvable" else n + len(unsolvable)
    k = int((scores <= made.kappa).sum())
    assert (made.n, made_of(made).k) == (seen, k)
    assert made.kappa in scores
    assert k > 0
    low, high = (float(stats.beta.ppf(p, seen + 1 - k, k)) for p in (0.025, 0.975))
    assert made_of(made).interval == pytest.approx((low, high), rel=1e-9)


def test_a_pac_threshold_covers_less_than_promised_as_rarely_as_delta_says() -> None:
    """By the rank counted among the scores; one rank further would be too far."""
    scores = np.random.default_rng(0).random(300)
    made = pac(scores, "all")
    k = int((scores <= made.kappa).sum())
    assert stats.beta.cdf(0.9, 300 + 1 - k, k) <= 0.05 < stats.beta.cdf(0.9, 300 - k, k + 1)


@pytest.mark.parametrize("certify", [split, pac])
def test_coverage_falls_outside_it_as_often_on_either_side(certify: Certify) -> None:
    """With 40 scores one rank is a fortieth of coverage, and shows."""
    runs = 4_000
    rng = np.random.default_rng(1)
    below = above = 0
    for _ in range(runs):
        made = certify(rng.random(40), "all")
        interval = made_of(made).interval
        assert interval is not None
        below += 1 - made.kappa < interval[0]
        above += 1 - made.kappa > interval[1]
    for outside in (below, above):
        assert stats.binomtest(outside, runs, 0.025).pvalue > 1e-4

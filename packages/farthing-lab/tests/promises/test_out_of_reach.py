"""A budget a question that loses some questions, whatever the threshold: kappa* = -inf."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from farthing.errors import CalibrationError
from farthing.promises.certificate import Certificate, FloatArray, Population
from farthing.promises.kinds import groups, pac, split
from farthing.promises.kinds.groups import Grouped
from farthing.promises.kinds.pac import pac_rank
from farthing_lab.promises import weighted
from farthing_lab.promises.online import run_online
from farthing_lab.promises.weighted import Weighted, weighted_thresholds

GONE = -np.inf
levels = st.integers(1, 19).map(lambda i: Fraction(i, 20))
KINDS: dict[str, Callable[[FloatArray], Certificate]] = {
    "split": lambda scores: split.certify(scores, "0.1", fingerprint=""),
    "pac": lambda scores: pac.certify(scores, "0.1", "0.05", fingerprint=""),
    "groups": lambda scores: groups.certify(
        Grouped(scores, np.zeros(len(scores), int), ["law"]), "0.1", fingerprint=""
    ),
    "weighted": lambda scores: weighted.certify(
        Weighted(scores, np.ones(len(scores)), 1.0), "0.1", fingerprint=""
    ),
}
BEARABLE = {"split": 19, "pac": pac_rank(200, Fraction("0.1"), Fraction("0.05")) - 1}


def losing(lost: int, n: int = 200) -> FloatArray:
    scores = np.arange(1, n + 1) / n
    scores[:lost] = GONE
    return np.random.default_rng(0).permutation(scores)


@pytest.mark.parametrize("kind", KINDS)
def test_one_question_more_than_the_promise_can_bear_is_refused(kind: str) -> None:
    most = BEARABLE.get(kind, 19)
    kept = KINDS[kind](losing(most))
    assert kept.promises
    assert kept.kappa == (most + 1) / 200
    reach = f"{1 - (most + 1) / 200:.3g}"
    with pytest.raises(CalibrationError) as refused:
        KINDS[kind](losing(most + 1))
    said = str(refused.value)
    assert f"this budget reaches a coverage of {reach} at most" in said
    assert "too little to promise 0.9 of new ones; give a larger --question-budget " in said
    assert ("in the group 'law'" in said) == (kind == "groups")
    assert "\n" not in said


@pytest.mark.parametrize("kind", KINDS)
def test_too_few_questions_are_no_excuse_where_everything_is_not_enough(kind: str) -> None:
    assert not KINDS[kind](losing(0, 5)).promises
    with pytest.raises(CalibrationError, match=r"a coverage of 0\.8 at most"):
        KINDS[kind](losing(1, 5))


@given(
    st.lists(st.integers(0, 32) | st.sampled_from([np.inf, GONE]), max_size=40),
    levels,
    st.sampled_from(["all", "solvable"]),
)
@settings(deadline=None)
def test_it_is_refused_exactly_where_everything_covers_too_few(
    drawn: list[float], alpha: Fraction, population: Population
) -> None:
    """Refused iff even the threshold 0 fails the conformal test of a lost question."""
    scores = np.array(drawn, float) / 32
    about = [score for score in scores if population == "all" or score < np.inf]
    lost = sum(score == GONE for score in about)
    p_value = Fraction(1 + lost, len(about) + 1)  # of a new question that is lost
    if lost and (p_value > alpha):
        with pytest.raises(CalibrationError, match="this budget reaches"):
            split.split_threshold(scores, alpha, population)
    else:
        found = split.split_threshold(scores, alpha, population)
        ordered = sorted(about)
        assert (found.n, found.kappa) == (len(about), ordered[found.k - 1] if found.k else 0)


@pytest.mark.parametrize("share", [0.03, 0.08])
def test_what_is_promised_under_a_budget_is_kept(share: float) -> None:
    """A share of the questions is lost at every threshold and missed; a refusal misses nothing."""
    runs, n = 3_000, 99
    rng = np.random.default_rng(3)
    misses = refused = 0
    for _ in range(runs):
        scores = rng.random(n + 1)
        scores[rng.random(n + 1) < share] = GONE
        try:
            misses += bool(scores[-1] < split.split_threshold(scores[:-1], "0.1").kappa)
        except CalibrationError:
            refused += 1
    assert (refused > runs / 10) == (share > 0.05)
    assert stats.binomtest(misses, runs, 0.1, alternative="greater").pvalue > 1e-4
    assert misses > 0.08 * (runs - refused)


def test_the_reach_counts_by_weight() -> None:
    scores = np.concatenate([np.full(2, GONE), np.linspace(0.1, 1, 98)])
    light, heavy = np.ones(100), np.ones(100)
    light[:2], heavy[:2] = 0.5, 20.0
    assert weighted.certify(Weighted(scores, light, 1.0), "0.1", fingerprint="").promises
    with pytest.raises(CalibrationError, match=f"coverage of {98 / 138:.3g} at most"):
        weighted.certify(Weighted(scores, heavy, 1.0), "0.1", fingerprint="")
    assert (weighted_thresholds(Weighted(scores, light, 1.0), np.ones(3), "0.1") > 0).all()
    with pytest.raises(CalibrationError, match="at most"):
        weighted_thresholds(Weighted(scores, heavy, 1.0), np.ones(3), "0.1")


def test_weightless_questions_that_are_lost_do_not_count() -> None:
    scores = np.concatenate([[GONE], np.linspace(0.1, 1, 99)])
    weights = np.ones(100)
    weights[0] = 0.0
    without = weighted.certify(Weighted(scores[1:], weights[1:], 1.0), "0.1", fingerprint="")
    found = weighted.certify(Weighted(scores, weights, 1.0), "0.1", fingerprint="")
    assert found.kappa == without.kappa
    few = Weighted(scores[:5], weights[:5], 1.0)
    assert not weighted.certify(few, "0.1", fingerprint="").promises


def test_a_stream_cannot_bear_it() -> None:
    with pytest.raises(CalibrationError, match="-inf breaks the long-run bound"):
        run_online(np.array([0.5, GONE]), "0.1")

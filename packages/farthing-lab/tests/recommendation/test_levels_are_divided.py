"""Every division of delta or epsilon, exactly: what is proved changes where scipy says.

Simulations cannot see it: a promise that is tested at twice its share still fails seldom enough in
most draws. So each test builds answers with counts that are known, works out at which level they
are proved by the textbook test, and asks a hair to either side of it.
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from told_pool import both, records, traces

import farthing as ft
from farthing.errors import InputError
from farthing.promises.statistics.betting import mean_upper
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.recommendation.bundle_run import run_bundle
from farthing.recommendation.played import Questions

N = 200
HAIR = 1e-7
SURE = [0.5, 0.9] * 60
"""Of training questions: held-out ones are as sure as the surest, so that all are answered."""
TRAIN = traces(records("train", both(120), sure=SURE))
Asked = Callable[[float], ft.Agreement | ft.Parity | ft.Selective]


@pytest.fixture(scope="module")
def small() -> ft.Policy:
    """Return the policy that asks the small model, whatever the threshold: one operating point."""
    return ft.fit("always-small", TRAIN)


def held(**counts: int) -> ft.Traces:
    return traces(records("held", both(N, **counts), sure=[0.9] * N))


def proved(policy: ft.Policy, held_out: ft.Traces, asked: object) -> object | None:
    """Return the promise that is proved; None where none is."""
    try:
        certificate = policy.calibrate(held_out, asked).certificate  # type: ignore[arg-type]
    except InputError:
        return None
    assert certificate is not None
    return certificate.promise


def changes_at(policy: ft.Policy, held_out: ft.Traces, level: float, asked: Asked) -> bool:
    """Return whether a promise is proved a hair above a level, and not a hair below it."""
    sides = (asked(level * (1 + HAIR)), asked(level * (1 - HAIR)))
    return [proved(policy, held_out, one) is not None for one in sides] == [True, False]


def as_rare(successes: int, trials: int, chance: float) -> float:
    """Return the chance of so few errors where errors have a chance."""
    found: float = stats.binomtest(successes, trials, chance, alternative="less").pvalue
    return found


# All of a level


@pytest.mark.parametrize("lost", [0, 3, 7])
def test_agreement_has_all_of_delta_and_epsilon(small: ft.Policy, lost: int) -> None:
    given = held(lost=lost)
    delta = as_rare(lost, N, 0.1)
    assert changes_at(small, given, delta, lambda level: ft.Agreement("large", 0.1, level))
    epsilon = float(stats.beta.ppf(1 - 0.07, lost + 1, N - lost))
    assert changes_at(small, given, epsilon, lambda level: ft.Agreement("large", level, 0.07))


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "won"), [(5, 0), (9, 6), (0, 1)])
def test_parity_has_all_of_delta(small: ft.Policy, lost: int, won: int) -> None:
    delta = loss_p_value(lost, won, N, 0.08)
    asked = held(lost=lost, won=won)
    assert changes_at(small, asked, delta, lambda level: ft.Parity("large", 0.08, level))


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
def test_coverage_with_confidence_has_all_of_delta(delta: float) -> None:
    """The rank is the largest whose binomial tail is within delta; a hair more is one more."""
    questions = ft.generate("hotpotqa-llama2-7b", 700, seed=3)
    train, rest = questions.split(0.5, 0.5)
    policy = ft.fit("stopping", train)
    n, alpha = len(rest), 0.2
    tails = stats.binom.cdf(np.arange(n), n, alpha)
    rank = int((tails <= delta).sum())

    def found(level: float) -> object:
        promise = proved(policy, rest, ft.Coverage(0.8, level))
        return getattr(promise, "k", None)

    assert found(delta) == rank
    assert found(float(tails[rank]) * (1 - HAIR)) == rank
    assert found(float(tails[rank]) * (1 + HAIR)) == rank + 1


# Candidates


@pytest.mark.slow
def test_each_candidate_of_a_selective_promise_has_its_share_of_delta(small: ft.Policy) -> None:
    given, seldom = held(neither=11), as_rare(11, N, 0.1)
    known = proved(small, given, ft.Selective(0.9, 0.5))
    candidates = getattr(known, "candidates", 0)
    assert candidates > 3
    for one, other in pairwise((1, 2, candidates)):
        assert proved(small, given, ft.Selective(0.9, seldom * one * (1 + HAIR))) is None
        assert proved(small, given, ft.Selective(0.9, seldom * other * (1 - HAIR))) is None
    assert changes_at(small, given, seldom * candidates, lambda level: ft.Selective(0.9, level))
    promise = proved(small, given, ft.Selective("0.9", "0.25"))
    assert getattr(promise, "candidate_delta", None) == Fraction(1, 4) / candidates


@pytest.mark.slow
def test_few_held_out_questions_are_shared_by_fewer_candidates(small: ft.Policy) -> None:
    """Twenty questions a candidate: of forty two are tested, each at half of delta."""
    given = traces(records("held", both(40, neither=3), sure=[0.9] * 40))
    seldom = as_rare(3, 40, 0.3)
    promise = proved(small, given, ft.Selective(0.7, 2 * seldom * (1 + HAIR)))
    assert getattr(promise, "candidates", None) == 2
    assert changes_at(small, given, 2 * seldom, lambda level: ft.Selective(0.7, level))


# Answered and passed on


def passed(level: float, given: float, whole: float) -> ft.Selective:
    return ft.Selective(given, level, "large", whole)


@pytest.mark.slow
def test_given_answers_have_half_of_a_candidates_share_where_the_rest_is_passed_on(
    small: ft.Policy,
) -> None:
    """Both models are wrong alike, so that the whole loses nothing."""
    given, seldom = held(neither=11), as_rare(11, N, 0.1)
    promise = proved(small, given, passed(0.9, 0.9, 0.2))
    candidates = getattr(promise, "candidates", 0)
    assert candidates > 1
    assert loss_p_value(0, 0, N, 0.2) < seldom
    delta = 2 * candidates * seldom
    assert changes_at(small, given, delta, lambda level: passed(level, 0.9, 0.2))


@pytest.mark.slow
@pytest.mark.parametrize("lost", [3, 6])
def test_the_whole_has_the_other_half(small: ft.Policy, lost: int) -> None:
    """All questions are answered, and so seldom wrong that given answers are beyond doubt."""
    given, seldom = held(lost=lost), loss_p_value(lost, 0, N, 0.08)
    promise = proved(small, given, passed(0.9, 0.5, 0.08))
    candidates = getattr(promise, "candidates", 0)
    assert getattr(promise, "answered", 0) == N
    assert candidates > 1
    delta = 2 * candidates * seldom
    assert changes_at(small, given, delta, lambda level: passed(level, 0.5, 0.08))
    asked = Fraction("0.9")
    assert getattr(promise, "candidate_delta", None) == asked / candidates


@pytest.mark.slow
def test_what_is_passed_on_and_wrong_wins_nothing() -> None:
    """What is passed on large has wrong as well: the whole has lost two questions all the same."""
    unsure = [i % 3 == 0 for i in range(120)]
    right = [not one for one in unsure]
    who = {"small": right, "large": right}
    train = traces(records("train", who, sure=[0.5 if one else 0.9 for one in unsure]))
    counts = both(N, lost=2, neither=60)
    given = traces(records("held", counts, sure=[0.9] * 2 + [0.5] * 60 + [0.9] * (N - 62)))
    policy, seldom = ft.fit("always-small", train), loss_p_value(2, 0, N, 0.05)
    candidates = getattr(proved(policy, given, passed(0.9, 0.9, 0.05)), "candidates", 0)
    delta = 2 * candidates * seldom
    sides = [proved(policy, given, passed(delta * (1 + near), 0.9, 0.05)) for near in (HAIR, -HAIR)]
    assert [getattr(one, "answered", 0) == N - 60 for one in sides] == [True, False]


@pytest.mark.slow
def test_either_half_alone_proves_nothing(small: ft.Policy) -> None:
    """Answers that are right often enough and lose too much, and the other way round."""
    assert proved(small, held(lost=30), passed(0.9, 0.5, 0.02)) is None
    assert proved(small, held(neither=60), passed(0.9, 0.9, 0.2)) is None
    assert proved(small, held(lost=30), passed(0.9, 0.5, 0.4)) is not None
    assert proved(small, held(neither=60), passed(0.9, 0.5, 0.2)) is not None


# Intervals and domination


def beside_large() -> ft.Policy:
    """Return the small model's policy, trained where the large one is right more often."""
    return ft.fit("always-small", traces(records("train", both(120, lost=9))))


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (9, 2), (4, 13)])
def test_the_interval_of_what_is_gained_joins_two_at_half_the_error_each(
    small: ft.Policy, lost: int, won: int
) -> None:
    """Of 5 %, a half for the share that is lost and a half for the share that is won."""
    value = beside_large().evaluate(held(lost=lost, won=won)).value
    ends = [stats.binomtest(count, N).proportion_ci(0.975) for count in (lost, won)]
    assert value.gained_interval == pytest.approx(
        (ends[1].low - ends[0].high, ends[1].high - ends[0].low), rel=1e-6, abs=1e-12
    )


@pytest.mark.slow
def test_what_is_promised_is_missed_by_chance_or_broken_by_that_interval(small: ft.Policy) -> None:
    """The verdict changes where the whole interval is on the wrong side."""
    policy = small.calibrate(held(lost=2), ft.Parity("large", 0.05, 0.1))

    def verdict(lost: int) -> str:
        found = policy.evaluate(traces(records("test", both(N, lost=lost)))).found.judged
        assert found is not None
        return found.verdict

    def upper(lost: int) -> float:
        no_win, losses = (stats.binomtest(count, N).proportion_ci(0.975) for count in (0, lost))
        return float(no_win.high - losses.low)

    broken = next(lost for lost in range(N) if upper(lost) < -0.05)
    said = [verdict(lost) for lost in (10, 11, broken - 1, broken)]
    assert said == ["kept", "missed within chance", "missed within chance", "broken"]


@pytest.mark.slow
def test_a_model_dominates_at_a_third_of_five_percent_where_there_are_three() -> None:
    """A policy asks the dear one; a cheap one loses so little that it is proved, or nearly so."""
    n = 600
    dear = ft.fit("always-large", traces(records("train", three(120, 0))))

    def named(lost: int) -> bool:
        value = dear.evaluate(traces(records("test", three(n, lost)))).value
        assert value.instead in {None, "small"}
        return value.instead == "small"

    p_values = [loss_p_value(lost, lost, n, 0.02) for lost in range(60)]
    last = max(lost for lost, p in enumerate(p_values) if p <= 0.05 / 3)
    assert p_values[last + 1] < 0.05  # the level of one model alone would do for it
    assert [named(last), named(last + 1)] == [True, False]


def three(n: int, apart: int) -> dict[str, list[bool]]:
    """Return three models; small loses as many as it wins, and medium is wrong on half."""
    right = both(n, lost=apart, won=apart)
    return {"small": right["small"], "medium": [i % 2 == 0 for i in range(n)]} | {
        "large": right["large"]
    }


def test_the_interval_of_a_cost_errs_at_half_of_five_percent_at_either_end() -> None:
    """By the same bounds, of which `test_betting` says that they hold."""
    train, held, test = ft.generate("hotpotqa-llama2-7b", 900, seed=5).split(0.4, 0.3, 0.3)
    asked = ft.Budget("0.0009", "0.01")
    policy = ft.fit("stopping", train).calibrate(held, asked)
    done = policy.evaluate(test)
    judged = done.found.judged
    assert judged is not None
    assert judged.value == pytest.approx(done.metrics["cost_usd"])
    spent = (
        run_bundle(
            policy.bundle, Questions(test.arrays, test.arrays), np.random.default_rng(0)
        ).cost_nano
        / 10_000_000
    )
    ends = 1 - mean_upper(1 - spent, 0.025), mean_upper(spent, 0.025)
    assert judged.interval == pytest.approx([end * 0.01 for end in ends])

"""PETS: exact votes against enumeration, greedy against dynamic programming, and the budget."""

from collections import Counter
from itertools import product
from math import factorial, prod

import numpy as np
import pytest
from allocator_batches import saturating

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.allocators.lagrangian import pack
from farthing_lab.methods.allocators.pets import FIRST, PETS, agreement, gain, settled, vote_curve


def by_enumeration(p: FloatArray, k: int) -> float:
    """Return the chance that k samples vote for an answer that is likeliest, ties by lot."""
    best, total = {i for i, one in enumerate(p) if np.isclose(one, p.max())}, 0.0
    for counts in product(range(k + 1), repeat=len(p)):
        if sum(counts) == k:
            top = [i for i, n in enumerate(counts) if n == max(counts)]
            ways = factorial(k) / prod(map(factorial, counts))
            chance = ways * float(np.prod(p ** np.array(counts)))
            total += chance * len(best.intersection(top)) / len(top)
    return total


@pytest.mark.parametrize(
    "p", [[0.6, 0.4], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.3, 0.25, 0.25, 0.2], [1.0]]
)
def test_vote_curves_are_those_of_all_multinomial_counts(p: list[float]) -> None:
    curve = vote_curve(np.array(p), 6)
    expected = [by_enumeration(np.array(p), k) for k in range(7)]
    np.testing.assert_allclose(curve, expected, atol=1e-12)


@pytest.mark.parametrize("counts", [(1,), (3, 1), (2, 2, 1), (6, 5)])
def test_the_posterior_is_that_of_a_dirichlet_variable(counts: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.dirichlet([*(n + 1 for n in counts), 1], 200_000)
    share = (drawn.argmax(axis=1) == 0).mean()
    assert settled(counts) == pytest.approx(share, abs=4 * 0.5 / np.sqrt(200_000))


def test_two_answers_are_a_beta_variable_above_a_half() -> None:
    """Of (n) and one unseen answer: P(Beta(n + 1, 1) > 1/2) = 1 - 2^-(n + 1)."""
    for n in (1, 4, 20):
        assert settled((n,)) == pytest.approx(1 - 0.5 ** (n + 1), abs=1e-9)


def test_a_split_question_gains_more_than_one_that_agrees() -> None:
    assert gain((2, 2)) > gain((3, 1)) > gain((8, 1))
    assert gain((2,)) > gain((8,)) > 0


def test_greedy_is_the_dynamic_programme_where_gains_fall() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        n, most = 6, 5
        batch = saturating(rng, n, most)
        spare = int(rng.integers(0, n * (most - 1) + 1))
        got = PETS.allocate(batch, 100 * (n + spare))
        best = np.full(spare + 1, -np.inf)
        best[0] = 0.0
        table = np.zeros(spare + 1)
        for row in batch.value:
            table = np.array(
                [
                    max(table[s - k] + row[k] for k in range(min(s, most - 1) + 1))
                    for s in range(spare + 1)
                ]
            )
        assert got.value == pytest.approx(table[spare])
        taken = np.zeros(n, dtype=int)
        for _ in range(spare):
            gains = [
                row[k + 1] - row[k] if k + 1 < most else -1.0
                for row, k in zip(batch.value, taken, strict=True)
            ]
            taken[int(np.argmax(gains))] += max(gains) > 0
        assert batch.value[np.arange(n), taken].sum() == pytest.approx(table[spare])
        assert pack(batch, 100 * (n + spare)).bound == pytest.approx(table[spare])


def made_up(rng: np.random.Generator, n: int, most: int) -> IntArray:
    """Return samples of questions of which some are easy; some samples are no answer."""
    sure = rng.choice([0.45, 0.7, 0.97], size=(n, 1))
    answer = np.where(rng.random((n, most)) < sure, 0, rng.integers(1, 4, (n, most)))
    return np.where(rng.random((n, most)) < 0.03, -1, answer)


def test_a_batch_never_takes_more_than_its_budget_and_takes_it_all() -> None:
    rng = np.random.default_rng(2)
    for _ in range(500):
        n, most = int(rng.integers(1, 7)), int(rng.integers(1, 9))
        answer, budget = made_up(rng, n, most), int(rng.integers(n, 2 * n * most + 1))
        streams = [iter(row) for row in answer.tolist()]
        got = PETS.buy(lambda i: next(streams[i]), n, budget, most)  # noqa: B023
        assert sum(map(len, got)) == min(budget, n * most)
        assert all(1 <= len(one) <= most for one in got)
        assert [one == row[: len(one)] for one, row in zip(got, answer.tolist(), strict=True)]


def test_samples_go_where_votes_are_split() -> None:
    answer = np.array([[0] * 20, [0, 1] * 10])
    streams = [iter(row) for row in answer.tolist()]
    got = PETS.buy(lambda i: next(streams[i]), 2, 16, 20)
    assert len(got[0]) < 8 < len(got[1])


@pytest.mark.slow
def test_10000_streams_stay_within_their_budget() -> None:
    rng = np.random.default_rng(3)
    plans = [PETS.plan(made_up(rng, 60, 12), each) for each in (4, 5, 7.5, 11)]
    for at in range(10_000):
        n = int(rng.integers(1, 12))
        answer = made_up(rng, n, 12)
        budget = int(rng.integers(FIRST * n, 13 * n))
        taken = plans[at % 4].stream(answer, budget)
        assert taken.sum() <= budget
        assert ((taken >= FIRST) & (taken <= 12)).all()


def test_a_plan_spends_what_it_may_where_first_samples_disagree() -> None:
    answer = made_up(np.random.default_rng(4), 600, 20)
    plan = PETS.plan(answer, 8)
    means = Counter({one.agree: float(np.mean(one.samples)) for one in plan.buckets})
    assert means[4] < means[3]
    assert sum(one.share for one in plan.buckets) == pytest.approx(1.0)
    total = sum(one.share * means[one.agree] for one in plan.buckets)
    assert total <= 8
    assert all(one.slope >= 0 for one in plan.buckets)
    assert agreement(np.array([[0, 0, 1, -1], [-1, -1, -1, -1]])).tolist() == [2, 0]


def test_too_few_samples_are_refused() -> None:
    answer = made_up(np.random.default_rng(5), 5, 6)
    with pytest.raises(InputError, match="fewer than one for each"):
        PETS.buy(lambda _: 0, 5, 4, 6)
    with pytest.raises(InputError, match="fewer than 4 for each"):
        PETS.plan(answer, 5).stream(answer, 19)
    with pytest.raises(InputError, match="at least and learns from more"):
        PETS.plan(answer, 3)

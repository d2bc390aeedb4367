"""Candidates proved side by side, against the graphical procedure that they are a case of."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.promises.chains import Chain, passed_on, prove_all
from farthing.promises.statistics.fixed_sequence import proven

DELTA = Fraction(1, 10)
Rows = list[list[Fraction]]


def by_graph(rows: Rows, shares: list[Fraction]) -> set[tuple[int, int]]:
    """Reject hypotheses by the algorithm of Bretz et al. 2009, its graph updated step by step.

    Each hypothesis passes its weight on to the next of its chain. The last one passes it to the
    first ones of the other chains, in proportion to the shares that these began with.
    """
    of = [(chain, place) for chain, row in enumerate(rows) for place in range(len(row))]
    weight = {node: shares[node[0]] if not node[1] else Fraction(0) for node in of}
    edge = {(one, other): Fraction(0) for one in of for other in of}
    for chain, place in of:
        if place + 1 < len(rows[chain]):
            edge[(chain, place), (chain, place + 1)] = Fraction(1)
            continue
        others = [k for k in range(len(rows)) if k != chain]
        whole = sum((shares[k] for k in others), Fraction(0))
        for k in others:
            edge[(chain, place), (k, 0)] = shares[k] / whole
    left, rejected = list(of), set()
    while found := [
        one for one in left if weight[one] and rows[one[0]][one[1]] <= weight[one] * DELTA
    ]:
        gone = found[0]
        left.remove(gone)
        rejected.add(gone)
        for one in left:
            weight[one] += weight[gone] * edge[gone, one]
        after = dict(edge)
        for one in left:
            for other in left:
                back = edge[one, gone] * edge[gone, one]
                through = edge[one, other] + edge[one, gone] * edge[gone, other]
                same = one == other or back == 1
                after[one, other] = Fraction(0) if same else through / (1 - back)
        edge = after
    return rejected


def by_chains(rows: Rows, shares: list[Fraction]) -> set[tuple[int, int]]:
    """Reject them by `prove_all`."""
    rejected: set[tuple[int, int]] = set()

    def prove(chain: int, share: Fraction) -> bool:
        done = 0
        while done < len(rows[chain]) and rows[chain][done] <= share * DELTA:
            done += 1
        rejected.update((chain, place) for place in range(done))
        return done == len(rows[chain])

    prove_all(shares, prove)
    return rejected


p_values = st.integers(0, 24).map(lambda k: Fraction(k, 200))  # 0 to 0.12, ties with shares too
chains = st.lists(st.lists(p_values, min_size=1, max_size=4), min_size=1, max_size=4)


@pytest.mark.slow
@given(chains, st.lists(st.integers(1, 6), min_size=4, max_size=4), st.booleans())
@settings(deadline=None, max_examples=400)
def test_it_rejects_what_the_graphical_procedure_rejects(
    rows: Rows, parts: list[int], all_of_it: bool
) -> None:
    """Shares of less than 1 together leave the rest to nobody."""
    whole = sum(parts[: len(rows)]) if all_of_it else sum(parts)
    shares = [Fraction(part, whole) for part in parts[: len(rows)]]
    assert by_chains(rows, shares) == by_graph(rows, shares)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_so_it_does_where_much_is_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(100):
        lengths = rng.integers(1, 5, size=4)
        rows = [[Fraction(int(p), 10_000) for p in rng.integers(0, 400, k)] for k in lengths]
        shares = [Fraction(2, 5), Fraction(1, 4), Fraction(1, 5), Fraction(3, 20)]
        assert by_chains(rows, shares) == by_graph(rows, shares)
        alone = {
            (chain, place)
            for chain, row in enumerate(rows)
            for place in np.flatnonzero(
                proven(np.array(row, dtype=float), float(shares[chain] * DELTA))
            )
        }
        assert alone <= by_chains(rows, shares)
        seen.add(len(by_chains(rows, shares)) - len(alone))
    assert max(seen) > 0  # something passes on


@pytest.mark.slow
def test_it_is_false_as_rarely_as_delta_says() -> None:
    """Of chains whose second point is not to be proved; p-values depend on one another."""
    rng, runs = np.random.default_rng(1), 4_000
    shares = [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    wrong = 0
    for _ in range(runs):
        u = rng.random()
        p = [u, (u + rng.random()) % 1, rng.random()]
        rows = [[Fraction(0), Fraction(p[0])], [Fraction(0)], [Fraction(p[1]), Fraction(p[2])]]
        found = by_chains(rows, shares)
        wrong += bool(found & {(0, 1), (2, 0), (2, 1)})
    assert wrong / runs < 0.1 + 4 * np.sqrt(0.09 / runs)
    assert wrong / runs > 0.08  # and not much more rarely, as the second chain's share passes on


def test_chains_are_tested_again_only_at_more_of_delta() -> None:
    """Whoever is done is left alone, and what is left is shared as it was at first."""
    asked: list[tuple[int, Fraction]] = []

    def prove(place: int, share: Fraction) -> bool:
        asked.append((place, share))
        return place == 0 or (place == 2 and share > Fraction(1, 5))

    tenths = [Fraction(5, 10), Fraction(3, 10), Fraction(2, 10)]
    now, passed = prove_all(tenths, prove)
    assert passed == [True, False, True]
    assert now[1] == 1
    assert asked[:3] == list(enumerate(tenths))
    assert asked[3:5] == [(1, Fraction(3, 5)), (2, Fraction(2, 5))]
    assert asked[5:] == [(1, Fraction(1))]


def test_shares_of_more_than_delta_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 1"):
        prove_all([Fraction(2, 3)] * 2, lambda *_: True)
    assert prove_all([], lambda *_: True) == ([], [])
    assert prove_all([Fraction(1)], lambda *_: True)[1] == [True]
    all_done = prove_all([Fraction(1, 2)] * 2, lambda *_: True)
    assert all_done == ([Fraction(1, 2)] * 2, [True, True])


def test_what_passed_on_is_said() -> None:
    one, other, third = (
        Chain(name=name, share=Fraction(share, 10), passed=passed)
        for name, share, passed in (("a", 5, True), ("b", 3, True), ("c", 2, False))
    )
    assert passed_on([one, other, third]) == (
        " Every point of a and b is proved, so that its 0.8 of it passed to the others."
    )
    assert passed_on([one, other]) == passed_on([third]) == passed_on([]) == ""

"""Which points are proved at a share of delta, and that nothing passes on before all of them are.

Every count of losses is tried, and held against the tail of the textbook's distribution.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from question_parts import proving, training
from scipy.stats import binom
from told_pool import records, traces

import farthing as ft
from farthing.errors import CalibrationError
from farthing.promises.agreeing import Agreeing
from farthing.promises.answers import Answers
from farthing.promises.base import Promise
from farthing.promises.certificate import BoolArray
from farthing.promises.kinds.escalated import PassedOn
from farthing.promises.observed import Facts, PlayedPoints
from farthing.promises.paired import Paired
from farthing.promises.statistics.fixed_sequence import Candidates
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.recommendation.certify import Contender, Proved, prove_cheapest
from farthing.recommendation.played import Questions
from farthing.recommendation.promised_grade import read_for
from farthing.traces.arrays import RIGHT

N, DELTA = 120, Fraction(1, 5)
SHARES = [Fraction(1), Fraction(1, 2), Fraction(3, 10), Fraction(3, 20)]
Point = Callable[[int], float]
"""The p-value of so many losses."""
by_parity = cache(lambda lost: loss_p_value(lost, 0, N, 0.1))


def by_agreement(lost: int) -> float:
    return float(binom.cdf(lost, N, 0.1))


def right(*lost: int) -> BoolArray:
    """Return points that lose so many of N questions, [N, G]."""
    return np.arange(N)[:, None] >= np.array(lost)


def asked_of(kind: str, share: Fraction, *lost: int) -> tuple[Promise, Any]:
    """Return a promise at a share of delta, and points that lose so many as its evidence."""
    correct, cost = right(*lost), np.tile(np.arange(len(lost)), (N, 1))
    if kind == "parity":
        paired = Paired(cost, correct, np.ones(N, bool), "large", share=share)
        return ft.Parity("large", "0.1", DELTA, share), paired
    if kind == "agreement":
        agreeing = Agreeing(cost, correct, "large", share=share)
        return ft.Agreement("large", "0.1", DELTA, share=share), agreeing
    one = Candidates(np.zeros(len(lost), np.int64), ("one",), (Fraction(1),))
    answers = Answers(np.ones_like(correct), correct, candidates=one, cost_nano=cost, share=share)
    if kind == "selective":
        return ft.Selective("0.9", DELTA), answers
    if kind == "given":  # the reference is right where the point is
        return ft.Selective("0.9", DELTA, "large", "0.1"), PassedOn(answers, correct[:, 0], "large")
    asked = ft.Selective("0.5", DELTA, "large", "0.1")  # what is given is right as good as always
    return asked, PassedOn(answers, np.ones(N, bool), "large")


def proved_points(kind: str, share: Fraction, *lost: int) -> list[bool]:
    """Return which points are said to be proved; one of them is certified where any is."""
    asked, evidence = asked_of(kind, share, *lost)
    found = asked.proved(evidence)
    assert found is not None
    certificate = asked.prove(evidence, fingerprint="", question_budget_nano=None)
    assert certificate.promises == found.any()
    promise: Any = certificate.promise
    assert promise.point is None or found[promise.point]
    assert promise.own_delta == DELTA * share
    if found.any() and kind not in {"parity", "agreement"}:
        assert promise.candidate_delta == DELTA * share
    if isinstance(asked, ft.Parity | ft.Agreement):
        assert [number <= asked.allows(N)(0) for number in lost[-1:]] == found[-1:].tolist()
    return [bool(one) for one in found]


@pytest.mark.parametrize("share", SHARES, ids=str)
@pytest.mark.parametrize(
    ("kind", "p_value", "part"),
    [
        ("parity", by_parity, Fraction(1)),
        ("agreement", by_agreement, Fraction(1)),
        ("selective", by_agreement, Fraction(1)),
        ("given", by_agreement, Fraction(1, 2)),
        ("whole", by_parity, Fraction(1, 2)),
    ],
)
def test_a_point_is_proved_at_its_share_of_delta_and_at_no_more(
    kind: str, p_value: Point, part: Fraction, share: Fraction
) -> None:
    """One point for every number of losses; of two the one tested first has to be proved, too."""
    level = float(DELTA * share * part)
    first = "last" if kind in {"parity", "agreement"} else "first"
    edge = max(lost for lost in range(20) if p_value(lost) <= level)
    assert p_value(edge + 1) > level
    for lost in range(14):
        assert proved_points(kind, share, lost) == [lost <= edge], lost
    if kind == "given":
        return  # the reference is right where the point is
    for lost in (edge, edge + 1):
        both = (lost, edge) if first == "last" else (edge, lost)
        found = proved_points(kind, share, *both)
        assert found == ([lost <= edge, True] if first == "last" else [True, lost <= edge])
        assert proved_points(kind, share, *both[::-1]) == [lost <= edge] * 2 or lost > edge


# What passes on


def contenders(asked: ft.Parity | ft.Agreement, small: int, medium: int) -> dict[str, Contender]:
    """Return two at half of delta each: a row of medium and small, and small alone."""
    known = told("train", 100, 20, 10)

    def part(some: ft.Traces) -> Questions:
        arrays = read_for(asked, some.arrays, RIGHT)
        return Questions(arrays, arrays)

    train, held = part(known), part(told("held", N, small, medium))
    return {
        name: Contender(
            ft.fit(name, known).bundle,
            asked.sharing(Fraction(1, 2)),
            training(train),
            proving(held),
            name=name,
        )
        for name in ("best-single", "always-small")
    }


def told(name: str, n: int, *lost: int) -> ft.Traces:
    """Return questions that small and medium lose so many of, and large none."""
    roles = zip(("small", "medium", "large"), (*lost, 0), strict=True)
    return traces(records(name, {role: [i >= many for i in range(n)] for role, many in roles}))


def proofs_of(asked: ft.Parity | ft.Agreement, small: int, medium: int) -> list[Proved]:
    return prove_cheapest(list(contenders(asked, small, medium).values()))[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "p_value"),
    [
        (ft.Parity("large", "0.1", DELTA), by_parity),
        (ft.Agreement("large", "0.1", DELTA), by_agreement),
    ],
    ids=["parity", "agreement"],
)
def test_a_chain_passes_on_only_what_it_proved_at_its_own_share(
    asked: ft.Parity | ft.Agreement, p_value: Point
) -> None:
    """Small is proved with all of delta, and not with half: neither has all of it."""
    half, whole = (
        max(lost for lost in range(20) if p_value(lost) <= float(DELTA * share))
        for share in (Fraction(1, 2), Fraction(1))
    )
    assert half < whole
    row, alone = proofs_of(asked, small=whole, medium=0)
    assert row.certificate.promises  # by medium
    assert not row.exhausted
    assert not alone.certificate.promises
    row, alone = proofs_of(asked, small=half, medium=0)
    assert row.exhausted
    assert alone.certificate.promises


@pytest.mark.parametrize("share", [Fraction(1), Fraction(2, 3), Fraction(51, 100)], ids=str)
def test_shares_that_add_up_to_more_than_delta_are_refused(share: Fraction) -> None:
    """Of contenders, of chains, and of candidates of one promise."""
    some = contenders(ft.Parity("large", "0.1", DELTA), 0, 0)
    asked = [Contender(**{**vars(one), "asked": one.asked.sharing(share)}) for one in some.values()]
    with pytest.raises(ValueError, match="more than 1"):
        prove_cheapest(asked)
    with pytest.raises(CalibrationError, match="add up to"):
        Candidates(np.array([0, 1]), ("a", "b"), (share, share))


def test_points_say_how_they_were_tested_at_the_same_share() -> None:
    """What is drawn next to be graded, and how many losses are allowed."""
    asked = ft.Parity("large", "0.1", DELTA, Fraction(1, 2))
    level = float(DELTA / 2)
    edge = max(lost for lost in range(20) if by_parity(lost) <= level)
    allowed = asked.allows(N)
    assert (allowed(0), ft.Parity("large", "0.1", DELTA).allows(N)(0)) == (edge, edge + 1)
    spent = np.tile([1, 2], (N, 1))
    for lost in (edge, edge + 1):
        points = PlayedPoints(right(lost, 0), np.ones((N, 2), bool), right(lost, 0), spent)
        evidence = asked.evidence(points, Facts(role="large", right=np.ones(N, bool)))
        assert evidence.share == Fraction(1, 2)
        tested = asked.testing(evidence)
        assert tested.delta == level
        made = asked.prove(evidence, fingerprint="", question_budget_nano=None)
        assert made.promise.point == (0 if lost <= edge else 1)  # type: ignore[attr-defined]

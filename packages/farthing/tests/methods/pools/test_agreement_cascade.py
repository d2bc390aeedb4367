"""The agreement cascade against one question and one call at a time."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from farthing.methods.base import Silent
from farthing.methods.cascades.agreement import (
    NOBODY,
    WIN,
    AgreementCascadeLearner,
    AgreementCascadePolicy,
)
from farthing.traces.arrays import NO_ANSWER, TraceArrays

STRONG = 4
POINTS = [
    ((0, 1), 2),
    ((2, 0), 2),
    ((0, 1, 2), 2),
    ((0, 1, 2), 3),
    ((3, 1, 0), 2),
    ((1, 2, 3), 3),
    ((), 1),
]
"""Who is asked, in this order, and how many must agree."""


def pool(n: int, seed: int, mute: float = 0.0) -> TraceArrays:
    """Return questions for five models; some gave no answer."""
    rng = np.random.default_rng(seed)
    right = rng.random((n, 5)) < [0.5, 0.6, 0.65, 0.7, 0.9]
    answer = np.where(right, 0, rng.integers(1, 4, (n, 5)))
    cost = np.array([1, 2, 3, 4, 20]) * 1_000 + rng.integers(0, 100, (n, 5))
    silent = rng.random((n, 5)) < mute
    answer[silent] = NO_ANSWER
    roles = tuple("abcde")
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=roles,
        models=roles,
        answer=answer[:, None].astype(np.int16),
        correct=(answer == 0)[:, None],
        cost_nano=cost[:, None],
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def policy() -> AgreementCascadePolicy:
    members = [(*who, *[NOBODY] * (3 - len(who))) for who, _ in POINTS]
    votes = [needed for _, needed in POINTS]
    return AgreementCascadePolicy(
        STRONG, np.array(members), np.array(votes), np.arange(len(POINTS), dtype=float)
    )


def played(answers: list[int], point: int) -> tuple[list[int], int | None]:
    """Ask one question as the paper does; return who was asked, and whose answer is given."""
    members, needed = POINTS[point]
    asked: list[int] = []
    for place, member in enumerate(members):
        said = [answers[m] for m in asked if answers[m] != NO_ANSWER]
        most = max((said.count(each) for each in said), default=0)
        if most >= needed or most + len(members[place:]) < needed:
            break
        asked.append(member)
    said = [answers[m] for m in asked if answers[m] != NO_ANSWER]
    most = max((said.count(each) for each in said), default=0)
    leader = next(
        (m for m in asked if answers[m] != NO_ANSWER and said.count(answers[m]) == most), None
    )
    if members and most >= needed:
        return asked, leader
    return [*asked, STRONG], STRONG


@pytest.mark.parametrize("mute", [0.0, 0.3])
def test_points_are_what_loops_come_to(mute: float) -> None:
    traces = pool(150, seed=1, mute=mute)
    points = policy().points(traces)
    answers, cost = traces.answer[:, 0].tolist(), traces.cost_nano[:, 0].tolist()
    kinds = set()
    for i in range(len(traces)):
        for point in range(len(POINTS)):
            asked, given = played(answers[i], point)
            where = (i, point, asked, given)
            assert points.cost_nano[i, point] == sum(cost[i][m] for m in asked), where
            assert points.calls[i, point] == len(asked), where
            assert points.answered[i, point] == (given is not None and answers[i][given] >= 0), (
                where
            )
            right = given is not None and answers[i][given] == 0
            assert points.correct[i, point] == right, where
            kinds.add((len(asked), given == STRONG))
    assert {(2, False), (3, False), (3, True), (4, True), (1, True)} <= kinds


def test_it_asks_no_further_than_who_can_still_agree() -> None:
    """Three must agree and two differ: the third is left out, and the strong one asked."""
    traces = pool(400, seed=2)
    points = policy().points(traces)
    differ = traces.answer[:, 0, 0] != traces.answer[:, 0, 1]
    all_three = POINTS.index(((0, 1, 2), 3))
    expected = traces.cost_nano[:, 0][:, [0, 1, STRONG]].sum(axis=1)
    assert points.cost_nano[differ, all_three].tolist() == expected[differ].tolist()


def fitted(train: TraceArrays, strong: str | None = None) -> AgreementCascadePolicy:
    found = AgreementCascadeLearner(strong).fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(found, AgreementCascadePolicy)
    return found


def test_training_keeps_the_groups_that_no_other_group_beats() -> None:
    train = pool(500, seed=3)
    found = fitted(train)
    points = found.points(train)
    strong = train.correct[:, 0, STRONG]
    cost = points.cost_nano.mean(axis=0)
    kept = (WIN * (~strong[:, None] & points.correct) - (strong[:, None] & ~points.correct)).mean(
        axis=0
    )
    assert found.strong == STRONG
    assert found.members[-1].tolist() == [NOBODY] * 3  # the strong model alone is the dearest
    assert (np.diff(cost) > 0).all()
    assert (np.diff(kept[:-1]) > 0).all()
    np.testing.assert_allclose(found.values, cost / 1e9)
    groups: list[tuple[tuple[int, ...], int]] = [(two, 2) for two in combinations(range(4), 2)]
    groups += [(three, votes) for three in combinations(range(4), 3) for votes in (2, 3)]
    for who, votes in groups:  # no group is both cheaper and safer than one that was kept
        padded = np.array([[*who, *[NOBODY] * (3 - len(who))]])
        one = AgreementCascadePolicy(STRONG, padded, np.array([votes]), np.zeros(1)).points(train)
        lost = (strong[:, None] & ~one.correct).mean()
        safe = WIN * (~strong[:, None] & one.correct).mean() - lost
        beaten = (one.cost_nano.mean() < cost[:-1] - 1e-9) & (safe > kept[:-1] + 1e-12)
        assert not beaten.any(), (who, votes)


def test_nobody_who_costs_as_much_as_the_strong_one_is_a_member() -> None:
    train = pool(300, seed=4)
    found = fitted(train, strong="c")
    assert found.strong == 2
    assert set(found.members.ravel().tolist()) <= {NOBODY, 0, 1}
    alone = fitted(replace(train, cost_nano=np.ones_like(train.cost_nano)))
    assert alone.members.tolist() == [[NOBODY] * 3]

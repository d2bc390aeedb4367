"""What judges' replies say, against enumeration of every state and every next reply."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.methods.base import Silent
from farthing.methods.scorer import Scorers
from farthing.process.base import NOTHING
from farthing.process.play import begin, initial_state
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays
from farthing_lab.methods.bayes import posterior
from farthing_lab.methods.bayesian_judges import (
    JudgeReplies,
    Judges,
    OpinionsLearner,
    OpinionsPolicy,
    classes,
    fit_judges,
)

seeds = st.integers(0, 2**32 - 1)
BINS = 2


def judges(rng: np.random.Generator, answers: int, number: int, levels: int = 2) -> Judges:
    scorers = Scorers((), np.zeros((0, number)), np.ones((0, number)), np.zeros((1, number)))
    return Judges(
        scorers,
        np.full((number, BINS - 1), 0.5),
        rng.dirichlet(np.ones(levels)),
        rng.uniform(0.1, 0.9, (number, levels)),
        rng.uniform(0.05, 0.4, number),
        rng.dirichlet(np.ones(BINS), (2, number)),
        float(answers),
    )


def drawn(of: Judges, n: int, rng: np.random.Generator) -> tuple[JudgeReplies, BoolArray]:
    """Return replies as the model says they come, and which are right: answer 0 always is."""
    level = rng.choice(len(of.classes), n, p=of.classes)
    right = rng.random((n, len(of.right))) < of.right[:, level].T
    answer = np.where(right, 0, rng.integers(1, int(of.answers), right.shape))
    answer[~right & (rng.random(right.shape) < of.silent)] = NO_ANSWER
    high = np.where(right, of.sure[1, :, 1], of.sure[0, :, 1])
    return JudgeReplies(answer, (rng.random(right.shape) < high).astype(int)), right


def chance_of(of: Judges, j: int, reply: tuple[int, int], truth: int, level: int) -> float:
    """Return how likely a judge replies so in one state."""
    answer, found = reply
    r, s = float(of.right[j, level]), float(of.silent[j])
    if answer == truth:
        return r * float(of.sure[1, j, found])
    if answer == NO_ANSWER:
        return (1 - r) * s
    return (1 - r) * (1 - s) / (of.answers - 1) * float(of.sure[0, j, found])


def slowly(of: Judges, said: dict[int, tuple[int, int]]) -> FloatArray:
    """Return the joint probability of each answer's being right and the replies, [K]."""
    total = np.zeros(int(of.answers))
    for truth, level in product(range(int(of.answers)), range(len(of.classes))):
        p = of.classes[level] / of.answers
        for j, reply in said.items():
            p *= chance_of(of, j, reply, truth, level)
        total[truth] += p
    return total


def heard(
    of: Judges, replies: JudgeReplies, known: BoolArray, i: int
) -> dict[int, tuple[int, int]]:
    every = range(len(of.right))
    return {j: (int(replies.answer[i, j]), int(replies.bins[i, j])) for j in every if known[i, j]}


@settings(deadline=None, max_examples=40)
@given(seed=seeds)
def test_beliefs_are_exact_bayes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = judges(rng, int(rng.integers(2, 6)), int(rng.integers(1, 5)))
    replies, _ = drawn(of, 6, rng)
    known = rng.random(replies.answer.shape) < 0.6
    belief = of.belief(replies, known)
    for i in range(6):
        joint = slowly(of, heard(of, replies, known, i))
        exact = joint / joint.sum()
        for j in np.flatnonzero(belief.first[i]):
            assert belief.chance[i, j] == pytest.approx(exact[replies.answer[i, j]], abs=1e-9)
        unheard = float(belief.left[i].sum() * belief.unheard[i])
        assert belief.chance[i].sum() + unheard == pytest.approx(1)
        assert (belief.leader[i] == -1) == (not belief.first[i].any())


@settings(deadline=None, max_examples=40)
@given(seed=seeds)
def test_a_gain_is_what_trying_every_next_reply_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = judges(rng, int(rng.integers(2, 6)), int(rng.integers(2, 5)))
    replies, _ = drawn(of, 4, rng)
    known = rng.random(replies.answer.shape) < 0.5
    gain = of.gain(of.belief(replies, known))
    for i, j in product(range(4), range(len(of.right))):
        if known[i, j]:
            continue
        said = heard(of, replies, known, i)
        joint = slowly(of, said)
        now = best(joint, said)
        later = 0.0
        for answer, found in [*product(range(int(of.answers)), range(BINS)), (NO_ANSWER, 0)]:
            more = said | {j: (answer, found)}
            later += best(slowly(of, more), more)
        assert gain[i, j] == pytest.approx((later - now) / joint.sum(), abs=1e-9)


def best(joint: FloatArray, said: dict[int, tuple[int, int]]) -> float:
    """Return the chance that the best of the answers that were given is right."""
    return max((float(joint[a]) for a, _ in said.values() if a != NO_ANSWER), default=0.0)


@settings(deadline=None, max_examples=40)
@given(seed=seeds)
def test_the_order_of_the_judges_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = judges(rng, 4, 4)
    replies, _ = drawn(of, 5, rng)
    known = rng.random(replies.answer.shape) < 0.7
    order = rng.permutation(4)
    other = replace(
        of,
        right=of.right[order],
        silent=of.silent[order],
        sure=of.sure[:, order],
    )
    same = JudgeReplies(replies.answer[:, order], replies.bins[:, order])
    one, two = of.belief(replies, known), other.belief(same, known[:, order])
    np.testing.assert_allclose(
        np.sort(one.chance, axis=1), np.sort(two.chance, axis=1), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(of.gain(one)[:, order], other.gain(two), atol=1e-9)


def test_it_is_bayes_rule_of_ratings() -> None:
    """`belief` is `posterior` with states (answer, class) and one rater."""
    rng = np.random.default_rng(3)
    of = judges(rng, 3, 3)
    replies, _ = drawn(of, 20, rng)
    known = np.ones(replies.answer.shape, dtype=bool)
    states = list(product(range(3), range(2)))
    prior = np.array([of.classes[level] / 3 for _, level in states])
    belief = of.belief(replies, known)
    for i in range(20):
        said = heard(of, replies, known, i)
        rows = [[[chance_of(of, j, r, *state) for state in states]] for j, r in said.items()]
        after = posterior(prior, np.array(rows)).reshape(3, 2).sum(axis=1)
        for j in np.flatnonzero(belief.first[i]):
            assert belief.chance[i, j] == pytest.approx(after[replies.answer[i, j]])


def test_probabilities_come_true() -> None:
    rng = np.random.default_rng(4)
    of = judges(rng, 4, 4, 3)
    replies, right = drawn(of, 20_000, rng)
    belief = of.belief(replies, np.ones(right.shape, dtype=bool))
    led = belief.leader >= 0
    rows = np.flatnonzero(led)
    p, won = belief.chance[rows, belief.leader[rows]], right[rows, belief.leader[rows]]
    for low in np.arange(0.3, 1.0, 0.1):
        among = (p >= low) & (p < low + 0.1)
        if among.sum() > 300:
            assert won[among].mean() == pytest.approx(p[among].mean(), abs=0.04)


def recorded(replies: JudgeReplies, right: BoolArray, price: FloatArray) -> TraceArrays:
    n, number = right.shape
    names = tuple(f"j{k}" for k in range(number))
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=names,
        models=names,
        answer=replies.answer[:, None].astype(np.int16),
        correct=right[:, None],
        cost_nano=np.tile(np.ceil(price * 1e9).astype(np.int64), (n, 1))[:, None],
        signals={},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


PRICE = np.array([1e-4, 3e-4, 1e-3, 3e-3])


@cache
def learned() -> tuple[OpinionsPolicy, TraceArrays]:
    rng = np.random.default_rng(5)
    of = judges(rng, 5, 4, 3)
    train, test = (recorded(*drawn(of, n, rng), PRICE) for n in (800, 300))
    policy = OpinionsLearner().fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, OpinionsPolicy)
    return policy, test


@pytest.mark.parametrize("point", [0, 10, 20, 30, 40, 58])
def test_it_buys_just_where_the_value_exceeds_the_price(point: int) -> None:
    """By enumeration of the next reply, in the state of every question after 1 to 3 replies."""
    policy, test = learned()
    of = replace(policy.judges, answers=float(round(policy.judges.answers)))
    policy = replace(policy, judges=of)
    wrong_usd = -1.0 / policy.values[point]
    rng = np.random.default_rng(point)
    bought = 0
    for turn in (1, 2, 3):
        state = begin(test.take(np.arange(25)), policy)
        for _ in range(turn):
            state = state.buying((rng.random(state.can_buy.shape) * state.can_buy).argmax(axis=1))
        line, asks, _ = policy.next(initial_state(state), point)
        said_all = of.said(state.seen)
        for i in range(25):
            said = heard(of, said_all, state.known, i)
            joint = slowly(of, said)
            value = {}
            for j in (j for j in range(4) if not state.known[i, j]):
                outcomes = [*product(range(int(of.answers)), range(4)), (NO_ANSWER, 0)]
                tried = [said | {j: reply} for reply in outcomes]
                later = sum(best(slowly(of, more), more) for more in tried)
                value[j] = wrong_usd * (later - best(joint, said)) / joint.sum()
            worth = {j: v / policy.price_usd[j] for j, v in value.items()}
            if max(worth.values()) == pytest.approx(1.0, abs=1e-6):
                continue
            assert bool(asks[i]) == any(v > policy.price_usd[j] for j, v in value.items())
            assert (line[i] == NOTHING) == (not asks[i])
            if asks[i]:
                assert worth[int(line[i])] == pytest.approx(max(worth.values()), rel=1e-6)
            bought += int(asks[i])
    assert (bought == 0) if point == 0 else (bought > 0 or point < 30)


def test_dearer_mistakes_buy_more_and_end_with_more_right_answers() -> None:
    policy, test = learned()
    points = policy.points(test)
    assert (np.diff(points.cost_nano, axis=1) >= 0).all()
    assert points.calls[:, 0].max() == 1
    assert points.calls[:, -1].mean() > 2
    assert points.correct[:, -1].mean() > points.correct[:, 0].mean() + 0.05


@pytest.mark.slow
def test_what_is_learned_comes_near_what_was_planted() -> None:
    rng = np.random.default_rng(6)
    of = judges(rng, 5, 4, 1)
    found = fit_judges(recorded(*drawn(of, 6_000, rng), PRICE))
    np.testing.assert_allclose(found.right @ found.classes, of.right[:, 0], atol=0.03)
    np.testing.assert_allclose(found.silent, of.silent, atol=0.03)
    assert found.answers == pytest.approx(5, abs=0.3)


def test_classes_of_difficulty_are_found() -> None:
    rng = np.random.default_rng(7)
    hard = rng.random(2_000) < 0.4
    right = rng.random((2_000, 8)) < np.where(hard, 0.15, 0.9)[:, None]
    share, member = classes(np.ones(right.shape, dtype=bool), right, 2)
    assert share == pytest.approx([hard.mean(), 1 - hard.mean()], abs=0.02)
    assert ((member[:, 0] > 0.5) == hard).mean() > 0.98


@pytest.mark.slow
def test_evidence_that_is_shared_is_discounted() -> None:
    """Independent judges are believed; where three repeat a fourth, what they say counts less."""
    rng = np.random.default_rng(8)
    of = judges(rng, 5, 4, 1)
    replies, right = drawn(of, 3_000, rng)
    assert fit_judges(recorded(replies, right, PRICE)).correlation <= 0.1
    again = [0, 0, 0, 0]
    copied = recorded(JudgeReplies(replies.answer[:, again], replies.bins), right[:, again], PRICE)
    found = fit_judges(copied)
    assert found.correlation >= 0.75
    said = found.said(copied)
    one = found.belief(said, np.arange(4) < np.ones((len(copied), 1)))
    every = found.belief(said, np.ones(right.shape, dtype=bool))
    assert every.chance.max(axis=1).mean() == pytest.approx(one.chance.max(axis=1).mean(), abs=0.1)


def test_a_rate_is_the_median_of_five_raters_who_each_leave_out_a_fifth() -> None:
    rng = np.random.default_rng(9)
    data = recorded(*drawn(judges(rng, 3, 4, 1), 203, rng), PRICE)
    right = data.correct[:, 0]
    _, member = classes(np.ones(right.shape, dtype=bool), right)
    part = np.random.default_rng(0).permutation(203) % 5
    found = fit_judges(data)
    for judge in range(right.shape[1]):
        for hard in range(3):
            said = []
            for left_out in range(5):
                kept = [i for i in range(203) if part[i] != left_out]
                hits = sum(member[i, hard] for i in kept if right[i, judge])
                said.append((hits + 1) / (sum(member[i, hard] for i in kept) + 2))
            assert found.right[judge, hard] == pytest.approx(sorted(said)[2], abs=1e-12)

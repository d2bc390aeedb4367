"""What thoughts are worth, beside loops over thoughts, budgets and cuts, and small known cases."""

from collections.abc import Sequence
from dataclasses import replace
from math import cos, pi

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.adactrl import AdaCtrl
from farthing_lab.methods.thinkers.base import Lesson, Thoughts, mean_of
from farthing_lab.methods.thinkers.baselines import LengthPenalty, RightAlone
from farthing_lab.methods.thinkers.brpo import Brpo
from farthing_lab.methods.thinkers.cib import Cib
from farthing_lab.methods.thinkers.e1 import E1, EFFORTS
from farthing_lab.methods.thinkers.elastic import Elastic
from farthing_lab.methods.thinkers.hbpo import SHARES, Hbpo
from farthing_lab.methods.thinkers.thinkdial import ThinkDial

CAP = 64
EASY, HARD = AdaCtrl().easy, AdaCtrl().hard


def unread() -> FloatArray:
    """Stand for the surprisal of thoughts whose thinker has no use for it."""
    raise AssertionError("the prior was asked")


def thoughts(
    seed: int, questions: int = 3, each: int = 8, cuts: int = 5, progress: float = 0.0
) -> Thoughts:
    rng = np.random.default_rng(seed)
    n = questions * each
    nats = rng.random(n) * 30
    return Thoughts(
        length=rng.integers(1, CAP + 1, size=n),
        cap=CAP,
        right=rng.integers(0, 2, size=(n, cuts)).astype(float),
        group=np.repeat(rng.permutation(questions), each),
        told=np.tile(np.arange(each) % len(SHARES), questions),
        begins=rng.choice([EASY, HARD, 40], size=n),
        surprisal=lambda: nats,
        progress=progress,
    )


def plain_brpo(some: Thoughts, p: list[float]) -> FloatArray:
    """Compute BRPO's advantages cut by cut, as its paper says it in words."""
    n, cuts = some.right.shape
    found = np.zeros((n, cuts))

    def worth(i: int, s: int) -> float:
        return sum(p[j] * float(some.right[i, j]) for j in range(s, cuts))

    for i in range(n):
        beside = [k for k in range(n) if some.group[k] == some.group[i]]
        for s in range(cuts):
            weights = [2.0**j for j in range(s)]
            past = sum(w * float(some.right[i, j]) for j, w in enumerate(weights))
            own = past / sum(weights) * sum(p[s:]) if s else 0.0
            others = sum(worth(k, s) for k in beside) / len(beside)
            found[i, s] = worth(i, s) - (s * own + (cuts - s) * others) / cuts
    return found


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20), st.booleans())
def test_brpo_is_its_sums(seed: int, even: bool) -> None:
    some = thoughts(seed)
    chances = () if even else (0.1, 0.1, 0.2, 0.2, 0.4)
    p = list(chances or [0.2] * 5)
    assert Brpo(chances=chances).advantage(some) == pytest.approx(plain_brpo(some, p), abs=1e-12)


def test_brpo_of_a_single_certain_cut_compares_with_the_others() -> None:
    """At the first cut nothing is past: what is left is the reward less its group's mean."""
    some = thoughts(1, cuts=1)
    plain = some.final - mean_of(some.final, some.group)
    assert Brpo(cuts=(1.0,)).advantage(some)[:, 0] == pytest.approx(plain)


def test_brpo_pays_the_part_of_a_thought_that_finds_the_answer() -> None:
    """Of two thoughts, one is right from the second cut on; the other from the last on."""
    early, late = [0.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]
    some = Thoughts(
        np.array([30, 60]),
        CAP,
        np.array([early, late]),
        np.zeros(2, int),
        np.zeros(2, int),
        np.zeros(2, int),
        unread,
    )
    found = Brpo().advantage(some)
    assert found[0, 0] == pytest.approx((3 / 4 - 1 / 4) / 2)
    assert found[1, 0] == pytest.approx(-(3 / 4 - 1 / 4) / 2)
    assert found[0, 3] < found[1, 3]  # by then the first has long been right


def plain_hbpo(some: Thoughts) -> FloatArray:
    """Compute HBPO's advantages thought by thought."""

    def worth(tokens: float) -> float:
        return 4 * cos(pi * tokens / (2 * CAP))

    budgets = [SHARES[told] * CAP for told in some.told]
    reward = []
    for i, b in enumerate(budgets):
        n = int(some.length[i])
        reward.append(float(some.final[i]) * min(worth(n) - abs(n - b) / CAP, worth(b)))
    found = []
    for i, b in enumerate(budgets):
        group = [reward[k] for k in range(len(reward)) if some.group[k] == some.group[i]]
        same = [
            reward[k]
            for k in range(len(reward))
            if some.group[k] == some.group[i] and budgets[k] == b
        ]
        deviation = float(np.std(group, ddof=1))
        within = (reward[i] - sum(group) / len(group)) / (deviation + 1e-6) if deviation else 0.0
        found.append(within + sum(same) / len(same) - worth(b))
    return np.array(found)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20))
def test_hbpo_is_its_sums(seed: int) -> None:
    some = thoughts(seed)
    assert Hbpo().advantage(some)[:, 0] == pytest.approx(plain_hbpo(some), abs=1e-9)


@pytest.mark.parametrize("told", range(4))
def test_hbpo_is_best_kept_at_the_budget_or_a_little_below(told: int) -> None:
    """No right thought is worth more than one that takes its budget; a long one is worth less."""
    lengths = np.arange(1, CAP + 1)
    n = len(lengths)
    some = Thoughts(
        lengths, CAP, np.ones((n, 1)), np.zeros(n, int), np.full(n, told), np.zeros(n, int), unread
    )
    worth = Hbpo().earned(some)
    at = int(SHARES[told] * CAP) - 1
    assert worth[at] == pytest.approx(worth.max())
    assert (np.diff(worth[at:]) < 0).all()
    assert not Hbpo().earned(replace(some, right=np.zeros((n, 1)))).any()


def test_the_baselines_are_right_and_right_less_a_price() -> None:
    some = thoughts(3)
    group = [(int(g),) for g in some.group]
    right = [float(one) for one in some.final]
    assert RightAlone().advantage(some)[:, 0] == pytest.approx(by_group(right, group), abs=1e-9)
    dear = [r - 0.25 * int(n) / CAP for r, n in zip(right, some.length, strict=True)]
    found = LengthPenalty(price=0.25).advantage(some)[:, 0]
    assert found == pytest.approx(by_group(dear, group), abs=1e-9)


def unit(rewards: list[float]) -> list[float]:
    """Return rewards less their mean, in their deviation; 0 where all are alike."""
    mean, deviation = sum(rewards) / len(rewards), float(np.std(rewards, ddof=1))
    return [(one - mean) / (deviation + 1e-6) if deviation else 0.0 for one in rewards]


def by_group(rewards: list[float], group: Sequence[tuple[int, ...]]) -> FloatArray:
    found = np.zeros(len(rewards))
    for key in set(group):
        rows = [i for i in range(len(rewards)) if group[i] == key]
        found[rows] = unit([rewards[i] for i in rows])
    return found


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20))
def test_elastic_and_cib_compare_what_their_rewards_say(seed: int) -> None:
    some = thoughts(seed)
    group = [(int(g),) for g in some.group]
    right = [float(one) for one in some.final]
    assert Elastic().advantage(some)[:, 0] == pytest.approx(by_group(right, group), abs=1e-9)
    dear = [r - 0.02 * float(nats) for r, nats in zip(right, some.surprisal(), strict=True)]
    assert Cib().advantage(some)[:, 0] == pytest.approx(by_group(dear, group), abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20))
def test_e1_counts_right_answers_that_keep_their_effort(seed: int) -> None:
    some = replace(thoughts(seed, each=9), told=np.tile(np.arange(9) % 3, 3))
    reward = []
    for i, told in enumerate(some.told):
        same = [int(n) for n, g in zip(some.length, some.group, strict=True) if g == some.group[i]]
        kept = int(some.length[i]) <= EFFORTS[told] * sum(same) / len(same)
        reward.append(float(some.final[i]) if kept else 0.0)
    cells = [(int(g), int(t)) for g, t in zip(some.group, some.told, strict=True)]
    assert E1().advantage(some)[:, 0] == pytest.approx(by_group(reward, cells), abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20))
def test_adactrl_is_its_sums(seed: int) -> None:
    some = thoughts(seed)
    reward = []
    for i, begin in enumerate(some.begins):
        same = [k for k in range(len(some.group)) if some.group[k] == some.group[i]]
        easy = sum(float(some.final[k]) for k in same) / len(same) > 5 / 8
        right, longest = bool(some.final[i]), max(int(some.length[k]) for k in same)
        worth = 1.0 if right else -1.0
        if begin == (EASY if easy else HARD):
            worth += 0.5
        elif begin not in {EASY, HARD}:
            worth -= 0.5
        if right and begin == EASY:
            worth += 0.5 * (1 - (1 - cos(pi * int(some.length[i]) / longest)) / 2)
        reward.append(worth)
    assert AdaCtrl().reward(some) == pytest.approx(reward, abs=1e-9)
    group = [(int(g),) for g in some.group]
    assert AdaCtrl().advantage(some)[:, 0] == pytest.approx(by_group(reward, group), abs=1e-9)


def test_adactrl_ranks_what_could_be_thought_of_an_easy_question() -> None:
    """All but one of a question's thoughts are right; every tag, as long as the longest or half."""
    begins = np.array([EASY, EASY, HARD, HARD, 40, EASY])
    length = np.array([8, 16, 8, 16, 8, 16])
    right = np.array([[1.0]] * 5 + [[0.0]])
    some = replace(thoughts(0, 1, 6), begins=begins, length=length, right=right)
    assert AdaCtrl().reward(some) == pytest.approx([1.75, 1.5, 1.0, 1.0, 0.5, -0.5])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**20), st.booleans())
def test_thinkdial_is_its_sums(seed: int, second: bool) -> None:
    some = thoughts(seed, each=9, progress=0.5 if second else 0.49)
    some = replace(some, told=np.tile(np.arange(9) % 3, 3))
    reward = []
    for i, told in enumerate(some.told):
        high = [
            int(some.length[k])
            for k in range(len(some.told))
            if some.group[k] == some.group[i] and some.told[k] == 2
        ]
        share = int(some.length[i]) / (sum(high) / len(high)) - (0.25, 0.5, 1.0)[told]
        price = 0.5 * max(0.0, share) if second and told < 2 else 0.0
        reward.append(float(some.final[i]) - price)
    assert ThinkDial().reward(some) == pytest.approx(reward, abs=1e-9)
    cells = [(int(g), int(t)) for g, t in zip(some.group, some.told, strict=True)]
    assert ThinkDial().advantage(some)[:, 0] == pytest.approx(by_group(reward, cells), abs=1e-9)


def test_thinkdial_has_no_price_where_no_thought_was_told_to_be_high() -> None:
    some = replace(thoughts(1, progress=1.0), told=np.tile([0, 1], 12))
    assert (ThinkDial().reward(some) == some.final).all()


def test_adactrl_is_taught_short_thoughts_of_easy_questions_and_any_of_hard_ones() -> None:
    """A question that is right in 6 of 8, one in 5 of 8, and one in none."""
    right = [[1, 1, 0, 1, 1, 0, 1, 1], [0, 1, 1, 0, 1, 1, 0, 1], [0] * 8]
    length = [[9, 8, 1, 4, 6, 1, 5, 4], [1, 9, 8, 1, 2, 3, 1, 4], [1] * 8]
    own = replace(
        thoughts(0),
        right=np.array(right, float).reshape(-1, 1),
        length=np.array(length).ravel(),
        group=np.repeat([0, 1, 2], 8),
    )
    easy = [Lesson(row, begins=(EASY,)) for row in (3, 4, 6, 7)]  # 6 is the mean of those right
    hard = [Lesson(row, begins=(HARD,)) for row in (9, 10, 12, 13, 15)]
    assert list(AdaCtrl().lessons(own)) == easy + hard


def test_thinkdial_is_taught_right_thoughts_as_often_in_each_mode() -> None:
    """Right at a quarter, a half and the end: one, two and three of four thoughts."""
    right = np.array([[0, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]], float)
    own = replace(thoughts(0, 1, 4), right=right)
    found = [(one.thought, one.part, one.told) for one in ThinkDial().lessons(own)]
    cut = [(2, 0, "low:")] * 3 + [(row, 1, "medium:") for row in (1, 2, 1)]
    assert found == cut + [(row, 2, "high:") for row in (0, 1, 3)]
    none = replace(own, right=np.array([[0, 0, 1]] * 4, float))
    assert [one.told for one in ThinkDial().lessons(none)] == ["high:"] * 4

"""The Budget Tracker: what it says is what an independent book says, and the edges are exact."""

import re
from fractions import Fraction

import numpy as np
import pytest

from farthing_lab.methods.agents.base import Allowance
from farthing_lab.methods.agents.budget_tracker import (
    BUDGET_TRACKER,
    GUIDANCE,
    read_outcome,
    regime_of,
    verifies,
)

TOLD = re.compile(r"(\w+) (\d+) used, (-?\d+) left of (\d+)")


@pytest.mark.parametrize(
    ("left", "regime"),
    [
        (Fraction(1), "high"),
        (Fraction(7, 10), "high"),
        (Fraction(7, 10) - Fraction(1, 10**12), "medium"),
        (Fraction(3, 10), "medium"),
        (Fraction(3, 10) - Fraction(1, 10**12), "low"),
        (Fraction(1, 10), "low"),
        (Fraction(1, 10) - Fraction(1, 10**12), "critical"),
        (Fraction(0), "critical"),
    ],
)
def test_each_edge_belongs_to_the_regime_above_it(left: Fraction, regime: str) -> None:
    assert regime_of(left) == regime


@pytest.mark.parametrize("budget", [10, 20, 30, 70, 1_000])
def test_whole_calls_meet_the_edges_exactly(budget: int) -> None:
    for used in range(budget + 1):
        left = budget - used
        by_hand = (
            "high"
            if 10 * left >= 7 * budget
            else "medium"
            if 10 * left >= 3 * budget
            else "low"
            if 10 * left >= budget
            else "critical"
        )
        told = BUDGET_TRACKER.told(Allowance.of({"search": budget}).charged({"search": used}))
        assert told.splitlines()[1] == GUIDANCE[by_hand]  # type: ignore[index]


@pytest.mark.slow
def test_used_and_left_add_up_after_every_event_of_10000_streams() -> None:
    rng = np.random.default_rng(0)
    for _ in range(10_000):
        budget = {"search": int(rng.integers(0, 9)), "tokens": int(rng.integers(0, 5_000))}
        allowance, book = Allowance.of(budget), {"search": 0, "tokens": 0}
        for _ in range(int(rng.integers(1, 8))):
            name = str(rng.choice(["search", "tokens", "browse"]))
            amount = int(rng.integers(0, 3 if name == "search" else 900))
            allowance = allowance.charged({name: amount})
            if name in book:
                book[name] += amount
            said = {
                found[1]: tuple(map(int, found.groups()[1:]))
                for found in TOLD.finditer(BUDGET_TRACKER.told(allowance))
            }
            for resource, most in budget.items():
                used, left, of = said[resource]
                assert used == book[resource]
                assert used + left == of == most


def test_the_tightest_budget_decides() -> None:
    allowance = Allowance.of({"search": 10, "tokens": 1_000}).charged({"tokens": 950})
    assert allowance.share_left() == Fraction(1, 20)
    assert BUDGET_TRACKER.told(allowance).endswith(GUIDANCE["critical"])
    assert not verifies(allowance)
    assert verifies(Allowance.of({"search": 10}).charged({"search": 9}))


def test_a_budget_of_nothing_is_critical() -> None:
    assert BUDGET_TRACKER.told(Allowance.of({"search": 0})).endswith(GUIDANCE["critical"])


def test_money_is_told_in_dollars() -> None:
    allowance = Allowance.of({"usd": 1_000_000}).charged({"usd": 250_000})
    assert "money $0.00025 used, $0.00075 left of $0.001." in BUDGET_TRACKER.told(allowance)


@pytest.mark.parametrize("text", ["", "12", "SUCCEED.", "All is fine", "succeed, do not pivot"])
def test_an_answer_that_nobody_objects_to_is_given(text: str) -> None:
    assert read_outcome(text) == "succeed"

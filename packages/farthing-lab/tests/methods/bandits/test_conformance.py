"""What every registered bandit keeps: probabilities, money, floors, and pure functions."""

import numpy as np
import pytest
from bandit_arms import ARMS, MEANS, best_mixture

from farthing import plugins
from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.methods.cards import system, systems
from farthing.traces.arrays import FloatArray
from farthing_lab.methods.bandits.base import (
    Arm,
    ArmChoice,
    Bandit,
    BanditContext,
    BanditSession,
    GradedDraw,
    begin,
    choose,
    release,
    settle,
)

NAMES = plugins.names("bandits")
PLAIN = np.array([1.0])


@pytest.fixture(params=NAMES)
def bandit(request: pytest.FixtureRequest) -> Bandit:
    loaded: Bandit = system("bandit", request.param)
    return loaded


def played(
    bandit: Bandit, budget: int, n: int, seed: int, floor: float = 0.01
) -> tuple[BanditSession, list[ArmChoice], list[float]]:
    """Play coins of known chances at costs that scatter up to the largest."""
    rng = np.random.default_rng(seed)
    session, choices, grades = begin(bandit, ARMS, budget, n, 1, floor), [], []
    for _ in range(n):
        choice = choose(bandit, session, PLAIN, rng)
        if choice is None:
            break
        most = ARMS[choice.arm].largest_nano
        assert choice.session.day.spent_nano + choice.session.day.reserved_nano <= budget
        grade = float(rng.random() < MEANS[choice.arm])
        session = settle(bandit, choice.session, choice, grade, int(rng.integers(0, most + 1)))
        choices.append(choice)
        grades.append(grade)
    return session, choices, grades


def test_probabilities_are_such_and_have_a_floor(bandit: Bandit) -> None:
    rng = np.random.default_rng(1)
    learned = bandit.begin(4, 3)
    for at in range(400):
        offered = rng.random(4) < 0.7
        offered[rng.integers(4)] = True
        seen = BanditContext(
            np.array([1.0, *rng.normal(size=2)]), offered, rng.random(4) * rng.choice(9)
        )
        found = bandit.propensities(learned, seen)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        assert (found[offered] > 0.0).all()
        assert not found[~offered].any()
        arm = int(rng.choice(4, p=found))
        learned = bandit.learn(learned, GradedDraw(seen, arm, found, float(at % 2)))
    _, choices, _ = played(bandit, 10**7, 300, 2, floor=0.05)
    for choice in choices:
        assert choice.propensities.min() >= 0.05 - 1e-12
        assert choice.propensities.sum() == pytest.approx(1.0)
        assert choice.propensity == choice.propensities[choice.arm] >= choice.least


def test_arms_are_drawn_as_often_as_is_said(bandit: Bandit) -> None:
    """The sum of 1[a] - p_a is a martingale: its size is that of its standard deviation."""
    _, choices, _ = played(bandit, 10**7, 1_000, 3)
    chances = np.array([one.propensities for one in choices])
    drawn = np.eye(3)[[one.arm for one in choices]]
    spread = np.sqrt((chances * (1 - chances)).sum(axis=0))
    assert (np.abs((drawn - chances).sum(axis=0)) <= 4 * spread).all()


def never_over(bandit: Bandit, streams: int) -> None:
    """Random arms, budgets, guesses of the length, late and missing grades."""
    rng = np.random.default_rng(4)
    for _ in range(streams):
        k, n = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        largest = rng.integers(1, 400, k)
        costs = zip((largest * rng.random(k)).astype(int).tolist(), largest.tolist(), strict=True)
        arms = [Arm(f"m{i}", low, high) for i, (low, high) in enumerate(costs)]
        budget, open_ones, spent = int(rng.integers(1, 1_500)), [], 0
        session = begin(bandit, arms, budget, int(rng.integers(1, 15)), 2)
        for _ in range(n):
            choice = choose(bandit, session, np.array([1.0, rng.normal()]), rng)
            fits = [arm.largest_nano <= session.day.left_nano for arm in arms]
            assert (choice is None) == (not any(fits))
            if choice is not None:
                assert fits[choice.arm]
                session = choice.session
                open_ones.append(choice)
            assert spent + sum(one.option.largest_nano for one in open_ones) <= budget
            if open_ones and rng.random() < 0.8:
                one = open_ones.pop(int(rng.integers(len(open_ones))))
                if rng.random() < 0.1:
                    session = release(session, one)
                    continue
                cost = int(rng.integers(0, one.option.largest_nano + 1))
                grade = None if rng.random() < 0.2 else float(rng.random())
                session, spent = settle(bandit, session, one, grade, cost), spent + cost
        assert session.day.spent_nano == spent <= budget


def test_never_above_the_budget(bandit: Bandit) -> None:
    never_over(bandit, 300)


@pytest.mark.simulations
def test_never_above_the_budget_on_10000_random_streams(bandit: Bandit) -> None:
    never_over(bandit, 10_000)


def regrets(bandit: Bandit, n: int, seeds: int, share: float) -> FloatArray:
    """Return LP - right answers, over sqrt(n), at a floor that shrinks as 1 / sqrt(n)."""
    found = []
    for seed in range(seeds):
        budget = int(share * n)
        _, _, grades = played(bandit, budget, n, seed, floor=0.2 / n**0.5)
        found.append((n * best_mixture(budget, n) - sum(grades)) / n**0.5)
    return np.array(found)


def bounded(bandit: Bandit, horizons: tuple[int, ...], seeds: int) -> None:
    """What is bounded is the upper end of the 95 % interval over seeds."""
    for share in (250.0, 900.0, 3_000.0):
        uppers = []
        for n in horizons:
            found = regrets(bandit, n, seeds, share)
            uppers.append(found.mean() + 1.96 * found.std(ddof=1) / len(found) ** 0.5)
        assert max(uppers) <= 2.5, (share, uppers)


@pytest.mark.slow
def test_regret_against_the_best_mixture_is_a_few_square_roots(bandit: Bandit) -> None:
    bounded(bandit, (250,), 12)


@pytest.mark.simulations
def test_regret_over_the_square_root_is_bounded_up_to_8000(bandit: Bandit) -> None:
    bounded(bandit, (500, 1_000, 2_000, 8_000), 8)


@pytest.mark.slow
def test_it_comes_to_ask_the_best_where_money_is_plenty(bandit: Bandit) -> None:
    session, choices, _ = played(bandit, 10**8, 1_500, 5)
    assert np.mean([one.arm == 2 for one in choices[-300:]]) > 0.7
    assert session.calls.sum() == len(choices) == 1_500


@pytest.mark.slow
def test_and_the_cheapest_where_there_is_little(bandit: Bandit) -> None:
    _, choices, _ = played(bandit, 1_500 * 160, 1_500, 6)
    assert np.mean([one.arm == 0 for one in choices[700:]]) > 0.5
    assert len(choices) > 1_100


def test_the_same_seed_gives_the_same_and_nothing_is_changed(bandit: Bandit) -> None:
    first, again = (played(bandit, 200_000, 150, 7) for _ in range(2))
    assert [one.arm for one in first[1]] == [one.arm for one in again[1]]
    session = first[0]
    paid, calls = session.paid_nano.copy(), session.calls.copy()
    choice = choose(bandit, session, PLAIN, np.random.default_rng(0))
    assert choice is not None
    settle(bandit, choice.session, choice, 1.0, 5)
    np.testing.assert_array_equal(paid, session.paid_nano)
    np.testing.assert_array_equal(calls, session.calls)
    assert session.day.reserved_nano == 0


def test_costs_are_learned_from_calls(bandit: Bandit) -> None:
    session, _, _ = played(bandit, 10**8, 600, 8, floor=0.2)
    real = np.array([arm.largest_nano for arm in ARMS]) / 2
    assert session.cost_nano == pytest.approx(real, rel=0.15)


def test_what_cannot_be_played_is_one_line(bandit: Bandit) -> None:
    with pytest.raises(InputError, match="nobody to ask"):
        begin(bandit, [], 100, 10, 1)
    with pytest.raises(InputError, match="in this order"):
        begin(bandit, [Arm("m", 5, 4)], 100, 10, 1)
    with pytest.raises(InputError, match=r"at most 0\.333"):
        begin(bandit, ARMS, 100, 10, 1, floor=0.4)
    session = begin(bandit, ARMS, 10**6, 10, 1)
    choice = choose(bandit, session, PLAIN, np.random.default_rng(0))
    assert choice is not None
    with pytest.raises(InputError, match="0 to 1"):
        settle(bandit, choice.session, choice, 1.5, 1)
    with pytest.raises(ValueError, match="is open"):
        settle(bandit, session, choice, 1.0, 1)


def test_arms_that_cannot_answer_are_left_out(bandit: Bandit) -> None:
    rng = np.random.default_rng(9)
    session = begin(bandit, ARMS, 10**6, 50, 1)
    some = np.array([False, True, False])
    for _ in range(20):
        choice = choose(bandit, session, PLAIN, rng, offered=some)
        assert choice is not None
        assert (choice.name, choice.propensity) == ("medium", 1.0)
    assert choose(bandit, session, PLAIN, rng, offered=np.zeros(3, dtype=bool)) is None


def test_every_card_says_what_it_is() -> None:
    found = {card.name: card for card in systems() if card.kind == "bandit"}
    assert set(found) == set(NAMES) >= {"knapsack", "squarecb"}
    for name, card in found.items():
        assert isinstance(plugins.load("bandits", name), SystemCard)
        assert card.meaning
        assert card.page.startswith("docs/")

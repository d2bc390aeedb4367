"""AgentTTS finds the best of all choices in fewer trials than chance, and never beyond a budget."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.methods.allocators.agent_tts import (
    AGENT_TTS,
    AgentTts,
    AllocationTrial,
    Objective,
    Space,
    asking,
    choices,
    even,
    insights,
    prompt,
)
from farthing_lab.methods.allocators.base import ItemBatch

PARTS, MODELS, MOST = 3, 3, 5


def task(seed: int, parts: int = PARTS) -> tuple[Space, FloatArray]:
    """Return parts, and the chance of each option: it saturates in samples."""
    rng = np.random.default_rng(seed)
    height = rng.uniform(0.3, 1.0, (parts, MODELS, 1))
    pace = rng.uniform(0.5, 4.0, (parts, MODELS, 1))
    samples = np.arange(1, MOST + 1)
    chance = height * (1 - np.exp(-samples / pace))
    price = np.array([10, 40, 100])[None, :, None] * rng.integers(5, 20, (parts, 1, 1))
    cost = (price * samples).reshape(parts, -1)
    model = np.broadcast_to(np.repeat(np.arange(MODELS), MOST), cost.shape).copy()
    names = tuple(f"{m} x{k}" for m in ("small", "medium", "large") for k in samples)
    batch = ItemBatch(np.zeros(cost.shape), cost, 2 * cost)
    low, high = batch.least_nano, int(cost.max(axis=1).sum())
    budget = int(low + rng.uniform(0.1, 0.5) * (high - low))
    space = Space(
        batch, budget, model, ("find", "think", "write", "check")[:parts], (names,) * parts
    )
    return space, chance.reshape(parts, -1)


def whole(chance: FloatArray) -> Objective:
    """The parts depend on each other: the task is right if all are, or the last one repairs it."""
    rows = np.arange(len(chance))

    def worth(choice: IntArray) -> float:
        of = chance[rows, choice]
        return float(of.prod() + (1 - of[:-1].prod()) * of[-1] ** 3 / 2)

    return worth


def optimum(space: Space, objective: Objective) -> float:
    n, k = space.batch.value.shape
    every = np.array(list(product(range(k), repeat=n)))
    cost = space.batch.expected_nano[np.arange(n), every].sum(axis=1)
    return max(objective(one) for one in every[cost <= space.budget_nano])


def by_chance(
    space: Space, _: Sequence[AllocationTrial], rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Propose any choice within the budget, all as likely."""
    offered = range(space.batch.value.shape[1])
    while not space.fits(one := tuple(int(k) for k in rng.choice(offered, len(space.batch)))):
        pass
    return [one]


def regrets(seed: int, trials: int) -> tuple[FloatArray, FloatArray]:
    """Return what is short of the optimum after each trial, of the rule and of chance."""
    space, chance = task(seed)
    objective = whole(chance)
    best = optimum(space, objective)
    found = []
    for proposer in (AGENT_TTS.proposer, by_chance):
        search = AgentTts(trials, proposer, seed).maximise(space, objective)
        so_far = search.best_so_far()
        found.append(1 - np.array(so_far + so_far[-1:] * (trials - len(so_far))) / best)
    return found[0], found[1]


@pytest.mark.slow
def test_it_comes_near_the_best_of_all_choices_sooner_than_chance() -> None:
    """40 tasks of 3,375 choices: the lead is beyond three standard errors, from ten trials on."""
    rule, chance = np.array([regrets(seed, 40) for seed in range(40)]).swapaxes(0, 1)
    assert (rule >= -1e-12).all()
    for at in (9, 19, 39):
        lead = chance[:, at] - rule[:, at]
        assert lead.mean() > 3 * lead.std(ddof=1) / np.sqrt(len(lead)), at
    assert rule[:, 39].mean() < 0.01
    assert rule[:, 19].mean() < chance[:, 39].mean(), "half the trials"


@pytest.mark.slow
@pytest.mark.parametrize("proposer", [AGENT_TTS.proposer, by_chance])
def test_nothing_beyond_the_budget_is_tried(proposer: object) -> None:
    for seed in range(8):
        space, chance = task(seed, 4)
        tried = []

        def objective(choice: IntArray) -> float:
            tried.append(space.batch.cost_of(choice))  # noqa: B023
            return whole(chance)(choice)  # noqa: B023

        found = AgentTts(25, proposer, seed).maximise(space, objective)  # type: ignore[arg-type]
        assert len(tried) == len(found.trials) <= 25
        assert max(tried) <= space.budget_nano
        assert found.value == max(one.value for one in found.trials)
        assert len({one.choice for one in found.trials}) == len(found.trials)


@pytest.mark.simulations
def test_nothing_beyond_the_budget_is_tried_on_10000_tasks() -> None:
    for seed in range(10_000):
        space, chance = task(seed)
        found = AgentTts(5, seed=seed).maximise(space, whole(chance))
        assert all(space.fits(one.choice) for one in found.trials)


def test_a_budget_for_one_choice_alone_ends_the_search() -> None:
    space, chance = task(0)
    poor = Space(space.batch, space.batch.least_nano, space.model)
    found = AGENT_TTS.maximise(poor, whole(chance))
    assert len(found.trials) == 1
    with pytest.raises(InputError, match="cheapest options of 3 items cost"):
        AGENT_TTS.maximise(Space(space.batch, space.batch.least_nano - 1), whole(chance))


def test_the_search_goes_on_where_even_shares_pay_for_the_cheapest_alone() -> None:
    """One of two parts can have its dearer option, which no even share pays for."""
    cost = np.array([[1, 2], [1, 2]])
    space = Space(ItemBatch(np.zeros((2, 2)), cost, cost), 3)
    assert even(space) == [(0, 0)]
    found = AGENT_TTS.maximise(space, lambda choice: float(choice @ [1, 2]))
    assert found.choice.tolist() == [0, 1]
    assert len(found.trials) == 3


def test_no_proposal_is_asked_for_that_would_not_be_tried() -> None:
    space, chance = task(2)
    asked: list[int] = []

    def counted(*given: Any) -> Sequence[Sequence[int]]:
        asked.append(len(given[1]))
        return by_chance(*given)

    assert len(AgentTts(4, counted).maximise(space, whole(chance)).trials) == 4
    assert max(asked) < 4


@pytest.mark.slow
def test_the_same_seed_gives_the_same_search() -> None:
    space, chance = task(3)
    first, second = (AGENT_TTS.maximise(space, whole(chance)) for _ in range(2))
    assert first.trials == second.trials


def test_even_shares_give_each_part_what_its_share_pays_for() -> None:
    space, _ = task(4)
    for one in even(space):
        assert space.fits(one)
    share = space.budget_nano // PARTS
    cost = space.batch.expected_nano
    cheap = even(space)[0]
    assert all(cost[i, k] <= share for i, k in enumerate(cheap))
    assert all(k == MOST - 1 or cost[i, k + 1] > share for i, k in enumerate(cheap))


def test_what_was_tried_first_counts() -> None:
    space, chance = task(5)
    first = [(0, 0, 0), (99, 0, 0), (0,)]
    found = AgentTts(5).maximise(space, whole(chance), first=first)
    assert found.trials[0].choice == (0, 0, 0)
    assert found.dropped >= 2


def test_an_llm_is_told_what_was_tried_and_what_that_shows() -> None:
    space, _ = task(6)
    archive = [
        AllocationTrial((0, 0, 0), 0.2),
        AllocationTrial((0, 1, 0), 0.2),
        AllocationTrial((5, 0, 0), 0.4),
    ]
    said = insights(space, archive)
    assert said == [
        "find: the best trial had medium x1",
        "think: small x2 was no better than small x1",
    ]
    text = prompt(space, archive)
    assert f"at most {space.budget_nano}" in text
    assert text.index(
        "find = medium x1; think = small x1; write = small x1 -> 0.4000"
    ) < text.index("-> 0.2000")
    assert all(line in text for line in said)


def test_what_an_llm_names_is_tried_and_the_rest_left_out() -> None:
    space, chance = task(7)
    good = "find = small x2; think = small x1; write = small x1"
    replies = [
        f"Let me see.\n- {good}\nfind = huge x9; think = small x1; write = small x1\nfind = small",
        "find = large x5; think = large x5; write = large x5",
        "I do not know.",
    ]
    asked: list[str] = []

    def ask(text: str) -> str:
        asked.append(text)
        return replies[(len(asked) - 1) % 3]

    assert choices(space, replies[0]) == [(1, 0, 0)]
    found = AgentTts(6, asking(ask)).maximise(space, whole(chance))
    assert found.trials[1].choice == (1, 0, 0)
    assert found.dropped >= 1, "beyond the budget"
    assert len(found.trials) == 6, "the rule goes on where the LLM names nothing new"
    assert "small x2" in asked[1]

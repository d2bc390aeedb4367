"""What every registered agent system keeps: no step that does not fit, and nothing hidden."""

import numpy as np
import pytest

from farthing import plugins
from farthing.errors import InputError
from farthing.methods.base import SystemCard
from farthing.methods.cards import system, systems
from farthing_lab.methods.agents.base import AgentStep, AgentSystem, Allowance

NAMES = plugins.names("agents")
RESOURCES = ("search", "tokens", "usd", "browse")


@pytest.fixture(params=NAMES)
def agent(request: pytest.FixtureRequest) -> AgentSystem:
    loaded: AgentSystem = system("agent", request.param)
    return loaded


def drawn(rng: np.random.Generator) -> tuple[dict[str, int], list[AgentStep]]:
    """Return budgets and steps, some of which need what has no budget."""
    names = [name for name in RESOURCES if rng.random() < 0.7]
    budget = {name: int(rng.integers(0, 40)) for name in names}
    steps = []
    for k in range(int(rng.integers(1, 5))):
        needs = {name: int(rng.integers(0, 15)) for name in RESOURCES if rng.random() < 0.7}
        steps.append(AgentStep(f"step {k}", needs))
    return budget, steps


def within_every_budget(agent: AgentSystem, streams: int) -> None:
    rng = np.random.default_rng(1)
    for _ in range(streams):
        budget, steps = drawn(rng)
        allowance, spent = Allowance.of(budget), dict.fromkeys(RESOURCES, 0)
        for _ in range(12):
            allowed = agent.allowed(allowance, steps)
            assert len(allowed) == len(steps)
            if not any(allowed):
                break
            needs = steps[int(rng.choice(np.flatnonzero(allowed)))].needs
            used = {name: int(rng.integers(0, most + 1)) for name, most in needs.items()}
            allowance = allowance.charged(used)
            for name, amount in used.items():
                spent[name] += amount
            for name, most in budget.items():
                assert allowance.used[name] == spent[name] <= most
                assert allowance.used[name] + allowance.left[name] == most


def test_no_budget_is_exceeded(agent: AgentSystem) -> None:
    within_every_budget(agent, 500)


@pytest.mark.simulations
def test_no_budget_is_exceeded_in_10000_streams(agent: AgentSystem) -> None:
    within_every_budget(agent, 10_000)


def test_more_budget_allows_no_less(agent: AgentSystem) -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        budget, steps = drawn(rng)
        more = {name: most + int(rng.integers(0, 9)) for name, most in budget.items()}
        before = agent.allowed(Allowance.of(budget), steps)
        after = agent.allowed(Allowance.of(more), steps)
        assert all(b or not a for a, b in zip(before, after, strict=True))


def test_without_a_budget_nothing_is_refused_or_told(agent: AgentSystem) -> None:
    free = Allowance.of({})
    assert agent.allowed(free, [AgentStep("search", {"search": 10**9})]) == (True,)
    assert agent.told(free) == ""


def test_the_same_allowance_gives_the_same(agent: AgentSystem) -> None:
    rng = np.random.default_rng(3)
    budget, steps = drawn(rng)
    allowance = Allowance.of(budget)
    assert agent.allowed(allowance, steps) == agent.allowed(allowance, steps)
    assert agent.told(allowance) == agent.told(allowance)
    assert allowance == Allowance.of(budget)


def test_every_card_says_what_it_is() -> None:
    found = [card for card in systems() if card.kind == "agent"]
    assert {card.name for card in found} == set(NAMES) >= {"budget-tracker"}
    assert all(isinstance(plugins.load("agents", name), SystemCard) for name in NAMES)
    assert all(card.meaning and card.page.startswith("docs/") for card in found)


@pytest.mark.parametrize("most", [-1, 1.5, True])
def test_what_is_no_budget_is_refused_in_one_line(most: object) -> None:
    with pytest.raises(InputError, match="the budget of search is") as problem:
        Allowance.of({"search": most})  # type: ignore[dict-item]
    assert "\n" not in str(problem.value)


def test_nothing_gives_back_what_was_used() -> None:
    with pytest.raises(ValueError, match="gives back"):
        Allowance.of({"search": 1}).charged({"search": -1})

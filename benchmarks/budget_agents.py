"""Agents under a budget: what a tracker changes for a small model, and which memory tiers pay.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/budget_agents.py tracker   # SmolLM2, minutes
    .venv/bin/python benchmarks/budget_agents.py memory                      # generated documents
    .venv/bin/python benchmarks/budget_agents.py decisions                   # seconds of a decision

All documents and questions are made up (tasks/linked_facts.py).
"""

import argparse
import asyncio
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from farthing.methods.agents.budget_tracker.tracker import BUDGET_TRACKER
from farthing.models.base import Completion, Message, Model, Prompt
from farthing.models.local import LocalSettings
from farthing.models.prices import PriceTable
from farthing.runtime.base import DirectClient, Turn
from farthing.runtime.react_agent import ReactAgent
from farthing.tasks.linked_facts import linked_facts
from farthing.tasks.local_search import LocalSearch
from farthing.tasks.templates import Prompts
from farthing.tasks.text import TEXT
from farthing.tasks.tools import always
from farthing.traces.base import Call

ASKING = "[user]\n{question}\n"
LOOKING = "[user]\n{observation}\n{hint}\n"
SHOWN = (
    Message("user", "Who is the smith of Norwick?"),
    Message("assistant", "Action: search[smith of Norwick]"),
    Message("user", "Norwick: Rain is common. The smith of Norwick is Otto Braun."),
    Message("assistant", "Action: finish[Otto Braun]"),
    Message("user", "What does the baker of Rona paint?"),
    Message("assistant", "Action: search[baker of Rona]"),
    Message("user", "Rona: The baker of Rona is Lea Brandt. The market is on Monday."),
    Message("assistant", "Action: search[Lea Brandt paints]"),
    Message("user", "Lea Brandt: Lea Brandt visited Rome. Lea Brandt paints boats."),
    Message("assistant", "Action: finish[boats]"),
)
"""Turns that go before each prompt: a model of this size follows examples, not instructions."""


@dataclass(frozen=True)
class Shown:
    """A model that is shown examples before each prompt."""

    model: Model

    @property
    def name(self) -> str:
        return self.model.name

    async def complete(self, prompt: Prompt) -> Completion:
        return await self.model.complete(replace(prompt, messages=(*SHOWN, *prompt.messages)))

    def largest_cost_nano(self, prompt: Prompt) -> int:
        return self.model.largest_cost_nano(replace(prompt, messages=(*SHOWN, *prompt.messages)))

    async def aclose(self) -> None:
        await self.model.aclose()


def tracker(n: int, budgets: list[int]) -> None:
    made = linked_facts(4 * n, np.random.default_rng(7))
    questions = [q for q in made.questions if q.group in ("1 fact", "2 facts")][:n]
    model = Shown(LocalSettings(model="smollm2-135m", path="smollm2").open(PriceTable()))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "react.txt").write_text(ASKING)
        Path(folder, "observation.txt").write_text(LOOKING)
        plain = ReactAgent(
            model,
            always(LocalSearch(made.documents, top=1)),
            Prompts(Path(folder)),
            max_tokens=24,
            max_steps=6,
        )

        async def play(agent: ReactAgent) -> list[Call]:
            client = DirectClient()
            acts = [agent.act(Turn(question, 1), client) for question in questions]
            return list(await asyncio.gather(*acts))

        async def all_of_them() -> None:
            rights: dict[str, Any] = {}
            print("| search budget | told | right, % | searches | steps' tokens | no answer, % |")
            print("| ---: | --- | ---: | ---: | ---: | ---: |")
            for budget in budgets:
                for name in ("nothing", "used and left", "used, left, and verified"):
                    agent = replace(plain, budget={"search": budget})
                    if name != "nothing":
                        agent = replace(agent, tracker=BUDGET_TRACKER)
                    if "verified" in name:
                        agent = replace(agent, verify=True)
                    calls = await play(agent)
                    pairs = zip(calls, questions, strict=True)
                    right = np.array([TEXT.grade(c.answer, q.gold) for c, q in pairs], dtype=float)
                    rights[name] = right
                    tokens = [(c.input_tokens or 0) + (c.output_tokens or 0) for c in calls]
                    assert all((c.tool_calls or 0) <= budget for c in calls)
                    lead = right - rights["nothing"]
                    print(
                        f"| {budget} | {name} | {100 * right.mean():.0f} ± {half(right):.0f}"
                        f" ({100 * lead.mean():+.0f} ± {half(lead):.0f})"
                        f" | {np.mean([c.tool_calls or 0 for c in calls]):.2f}"
                        f" | {np.mean(tokens):,.0f}"
                        f" | {100 * np.mean([c.answer is None for c in calls]):.0f} |",
                        flush=True,
                    )
                    if name == "used and left":
                        print("<!--", (calls[0].text or "")[:700], "-->", flush=True)
            await model.aclose()

        asyncio.run(all_of_them())


def half(values: Any) -> float:
    """Return half a 95 % interval of a mean, in %."""
    return float(196 * values.std(ddof=1) / np.sqrt(len(values)))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["tracker", "memory", "decisions"])
    arguments.add_argument("--n", type=int, default=60)
    given = arguments.parse_args()
    if given.what == "tracker":
        tracker(given.n, [1, 2, 4])


if __name__ == "__main__":
    main()

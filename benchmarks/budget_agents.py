"""Agents under a budget: what a tracker changes for a small model, and which memory tiers pay.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/budget_agents.py tracker   # SmolLM2, minutes
    .venv/bin/python benchmarks/budget_agents.py memory                      # generated documents
    .venv/bin/python benchmarks/budget_agents.py decisions                   # seconds of a decision

All documents and questions are made up (tasks/linked_facts.py).
"""

import argparse
import asyncio
import json
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing.methods.base import Silent
from farthing.models.base import Completion, Message, Model, Prompt
from farthing.models.prices import PriceTable
from farthing.reports.style import STYLE
from farthing.runtime.base import DirectClient, Turn
from farthing.tasks.templates import PromptTemplates
from farthing.tasks.text import TEXT
from farthing.tasks.tools import always
from farthing.traces.base import Call
from farthing_lab.agents.react import ReactAgent
from farthing_lab.methods.agents.base import AgentStep, Allowance
from farthing_lab.methods.agents.budget_mem.learner import RouterLearner, fit_family
from farthing_lab.methods.agents.budget_mem.policy import (
    FEATURES,
    Memory,
    Router,
    TierTable,
    best_fixed,
    features,
    line_of,
    run,
    tabulate,
)
from farthing_lab.methods.agents.budget_tracker import BUDGET_TRACKER
from farthing_lab.models.local import LocalSettings
from farthing_lab.studies.memory import follows
from farthing_lab.tasks.linked_facts import linked_facts
from farthing_lab.tasks.local_search import LocalSearch

IMAGE = Path(__file__).parents[1] / "docs/images/budget-agents.svg"
DRAWN = Path(tempfile.gettempdir()) / "farthing-budget-agents.json"
"""The figures of `memory`, so that `paint` can draw them again."""
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
        """Return the model's."""
        return self.model.name

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer after the examples."""
        return await self.model.complete(replace(prompt, messages=(*SHOWN, *prompt.messages)))

    def largest_cost_nano(self, prompt: Prompt) -> int:
        """Count the examples too."""
        return self.model.largest_cost_nano(replace(prompt, messages=(*SHOWN, *prompt.messages)))

    async def aclose(self) -> None:
        """Let go of the model."""
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
            PromptTemplates(Path(folder)),
            max_tokens=20,
            max_steps=5,
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
                for name in ("nothing", "used and left"):
                    agent = replace(plain, budget={"search": budget})
                    if name != "nothing":
                        agent = replace(agent, tracker=BUDGET_TRACKER)
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
            await model.aclose()

        asyncio.run(all_of_them())


def half(values: Any) -> float:
    """Return half a 95 % interval of a mean, in %."""
    return float(196 * values.std(ddof=1) / np.sqrt(len(values)))


def play_table(table: TierTable, leaf: Any) -> tuple[float, float]:
    right, cost = table.means(np.broadcast_to(leaf, len(table)))
    return 100 * right, cost / 1_000


def world_of(seed: int, n: int) -> tuple[TierTable, TierTable]:
    """Return tables of two halves of the questions about one world."""
    made = linked_facts(n, np.random.default_rng(seed))
    search = LocalSearch(made.documents).find
    table = tabulate(made.questions, search, follows, Silent())
    return table.take(np.arange(n // 2)), table.take(np.arange(n // 2, n))


def memory(worlds: int, n: int) -> None:
    tables = [world_of(seed, n) for seed in range(worlds + 1)]
    figures: dict[tuple[str, float], list[tuple[float, ...]]] = {}
    for seed in range(worlds):
        (train, test), elsewhere = tables[seed], tables[seed + 1][1]
        family = fit_family(train, learner=RouterLearner(seed=seed))
        for weight, price, router in zip(
            family.weights, family.prices, family.routers, strict=True
        ):
            fixed = best_fixed(train, price)
            figures.setdefault(("BudgetMem", weight), []).append(
                (
                    *play_table(test, test.followed(router)),
                    *play_table(elsewhere, elsewhere.followed(router)),
                )
            )
            figures.setdefault(("best fixed", weight), []).append(
                (*play_table(test, fixed), *play_table(elsewhere, fixed))
            )
        for weight in (0.2, 0.4):
            router = RouterLearner(seed=seed, slides=True).fit(train, weight)
            figures.setdefault(("BudgetMem, sliding", weight), []).append(
                (
                    *play_table(test, test.followed(router)),
                    *play_table(elsewhere, elsewhere.followed(router)),
                )
            )
        print(f"world {seed}", flush=True)
    print("| way | cost weighs | right, % | millionths of a USD | another world | cost there |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for (way, weight), rows in figures.items():
        values = np.array(rows)
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        cells = [f"{m:.1f} ± {e:.1f}" for m, e in zip(values.mean(axis=0), error, strict=True)]
        print(f"| {way} | {weight:g} | " + " | ".join(cells) + " |", flush=True)
    DRAWN.write_text(
        json.dumps(
            [[way, weight, *np.mean(rows, axis=0)] for (way, weight), rows in figures.items()]
        )
    )


FINISHED = {
    "1 search": {"told nothing": 0, "told what is left": 95},
    "3 searches": {"told nothing": 0, "told what is left": 50},
}
"""Share of 20 questions that SmolLM2 finished with an answer, in %, as `tracker` printed it."""


def paint() -> None:
    rows = json.loads(DRAWN.read_text())
    with rc_context({**STYLE, "axes.grid": True}):
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.5, 1))
        looks = {"BudgetMem": ("#009e73", "o"), "best fixed": ("#7d8590", "s")}
        for way, (color, marker) in looks.items():
            points = sorted((row[3], row[2]) for row in rows if row[0] == way)
            left.plot(
                *zip(*points, strict=True), color=color, marker=marker, markersize=4, label=way
            )
        left.set_title("Memory: right answers on held-out questions, %")
        left.set_xlabel("millionths of a USD a question")
        left.legend(loc="lower right")
        for k, (name, color) in enumerate(
            (("told nothing", "#7d8590"), ("told what is left", "#009e73"))
        ):
            places = np.arange(len(FINISHED)) + 0.38 * k
            right.bar(places, [one[name] for one in FINISHED.values()], 0.36, color=color)
            for place, one in zip(places, FINISHED.values(), strict=True):
                right.text(place, one[name] + 2, f"{one[name]}", ha="center", fontsize=8)
            right.plot([], [], color=color, linewidth=6, label=name)
        right.set_xticks(np.arange(len(FINISHED)) + 0.19, list(FINISHED))
        right.set_ylim(0, 115)
        right.grid(visible=False)
        right.legend(loc="upper right", fontsize=8)
        right.set_title("SmolLM2 finishes, % (none is right)")
        figure.savefig(IMAGE, metadata={"Date": None})


def decisions() -> None:
    made = linked_facts(50, np.random.default_rng(0))
    search = LocalSearch(made.documents).find
    rng = np.random.default_rng(1)
    shapes = ((FEATURES, 48), (48, 48), (48, 3))
    router = Router(
        tuple(rng.normal(size=shape) for shape in shapes),
        tuple(rng.normal(size=shape[1]) for shape in shapes),
    )
    spent = []
    for question in made.questions:
        for tiers in ((0, 0, 0, 0), (2, 2, 0, 0), (2, 2, 2, 2)):
            found = Memory(line_of(question.text))
            for module, tier in enumerate(tiers):
                found, _ = run(module, tier, found, search)
                began = time.perf_counter()
                router.choose(features(found, tiers[: module + 1]), (True, True, True))
                spent.append(time.perf_counter() - began)
    print(f"budget-mem: a tier in {1e6 * np.median(spent):.0f} us at the median", end=", ")
    print(f"{1e6 * np.quantile(spent, 0.99):.0f} us at 99 %")
    told = []
    for used in range(2_000):
        began = time.perf_counter()
        allowance = Allowance.of({"search": 3_000, "tokens": 10**6, "usd": 10**9})
        allowance = allowance.charged({"search": used})
        BUDGET_TRACKER.told(allowance)
        BUDGET_TRACKER.allowed(allowance, [AgentStep("search", {"search": 1})])
        told.append(time.perf_counter() - began)
    print(f"budget-tracker: an event in {1e6 * np.median(told):.0f} us at the median")


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("what", choices=["tracker", "memory", "paint", "decisions"])
    arguments.add_argument("--n", type=int, default=20)
    arguments.add_argument("--worlds", type=int, default=4)
    given = arguments.parse_args()
    if given.what == "tracker":
        tracker(given.n, [1, 3])
    elif given.what == "memory":
        memory(given.worlds, 300)
        paint()
    elif given.what == "paint":
        paint()
    else:
        decisions()


if __name__ == "__main__":
    main()

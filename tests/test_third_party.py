"""A package of somebody else's adds a method: one file, one entry-point line.

Its method has a parameter and looks at what is left of the budget. It is installed by pip, and then
stands in the list, in a comparison, in a bundle, and answers live.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from farthing.traces.base import Call, Trace
from farthing.traces.jsonl import write_traces

PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "halfway"
version = "1.0"

[project.entry-points."farthing.methods"]
halfway = "halfway:CARD"
"""
METHOD = '''
"""Asks one model after another, but never spends the second half of a budget on more."""

from dataclasses import dataclass

import numpy as np

from farthing.methods.base import Fitted, Method
from farthing.process.base import NOTHING, Decision
from farthing.process.batch_replay import descending_grid, point_at


@dataclass(frozen=True)
class HalfwayPolicy:
    most: int
    space: str = "calls"
    stochastic: bool = False

    @property
    def parameters(self):
        return descending_grid(self.most)

    def decide(self, state):
        unasked = state.can_buy & (state.bought == 0)
        line = np.where(unasked.any(axis=1), unasked.argmax(axis=1), NOTHING)
        allowed = state.turn <= point_at(self.parameters, state.parameter)
        rich = np.ones(len(state), dtype=bool)
        if state.budget is not None:
            rich = 2 * state.left_nano > state.budget.nano
        single = state.latest[:, 0] if state.turn else None
        return Decision(line, (rich & allowed).astype(float), np.ones((len(state), 1)), single)

    def to_state(self):
        return {}, {"most": self.most}

    @classmethod
    def from_state(cls, arrays, settings):
        return cls(settings["most"])


class HalfwayLearner:
    def fit(self, train, alpha, seed, progress):
        progress.update(1, 1, {})
        return Fitted(HalfwayPolicy(train.n_roles))


CARD = Method(
    name="halfway",
    label="Halfway",
    meaning="Asks up to so many models, and no more once half of the budget is gone",
    policy=HalfwayPolicy,
    learner=HalfwayLearner(),
    action_spaces=("pool",),
    varies_with=frozenset(),
)
'''
LIVE = """
import asyncio
from decimal import Decimal

import farthing as ft
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel

SAYS = {"small": "Answer: 5", "middle": "Answer: 6", "large": "Answer: 7"}
COSTS = {"small": "0.001", "middle": "0.002", "large": "0.004"}


def price(name):
    return TokenPrice((Rates(Decimal(0), Decimal(0)),), Decimal(COSTS[name]))


def model(name):
    return ScriptedModel(lambda _: SAYS[name], name=name, price=price(name))


async def main():
    policy = ft.load("bundle")
    for budget in (None, 0.1, 0.0015, 0.0005):
        models = {name: model(name) for name in SAYS}
        found = await policy.answer("What is 3 + 4?", models, budget_usd=budget)
        print(budget, found.rounds, found.cost_usd, found.best, found.guaranteed)


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package by pip into a folder of its own."""
    folder = tmp_path_factory.mktemp("halfway")
    (folder / "src").mkdir()
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "src/halfway.py").write_text(METHOD)
    site = folder / "site"
    command = ["pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", *command, "--target", str(site), str(folder)],
        check=True,
        capture_output=True,
    )
    return site


def beside(installed: Path) -> dict[str, str]:
    """Return an environment in which the package stands before whatever is on the path."""
    paths = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": paths}


@pytest.fixture
def farthing(installed: Path, tmp_path: Path) -> Any:
    environment = {**beside(installed), "COLUMNS": "80"}

    def run(*arguments: str) -> str:
        code = "from farthing.cli.main import run; run()"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def pool(questions: int) -> list[Trace]:
    """Three models: the small one is right on even questions, the large one always."""
    found = []
    for i in range(questions):
        right = {"small": i % 2 == 0, "middle": i % 4 != 3, "large": True}
        cost = {"small": 0.001, "middle": 0.002, "large": 0.004}
        calls = [
            Call(
                round=1,
                role=name,
                model=name,
                answer="7" if right[name] else f"not {name}",
                cost_usd=cost[name],
                largest_cost_usd=2 * cost[name],
            )
            for name in ("large", "middle", "small")
        ]
        found.append(Trace(id=f"q{i}", gold=["7"], calls=calls, independent=True))
    return found


@pytest.mark.slow
def test_it_is_listed_compared_bundled_and_asked(farthing: Any, tmp_path: Path) -> None:
    write_traces(tmp_path / "pool.jsonl", pool(120))
    cards = {card["name"]: card for card in json.loads(farthing("methods", "--json"))}
    assert cards["halfway"]["action_spaces"] == ["pool"]
    assert (cards["halfway"]["package"], cards["lazy"]["package"]) == ("halfway", "farthing")
    assert re.search(
        r"^halfway +Another package's *\nhalfway +Asks up to so many models",
        farthing("methods"),
        re.MULTILINE,
    )
    compared = farthing(
        *("compare", "--traces", "pool.jsonl", "--policies", "halfway,fixed-1"),
        *("--splits", "3", "--out", "report", "--workers", "1"),
    )
    assert "Halfway" in compared
    farthing("train", "--traces", "pool.jsonl", "--policy", "halfway", "--out", "bundle")
    promise = farthing("calibrate", "--bundle", "bundle", "--traces", "pool.jsonl")
    assert "covered with probability at least 0.9" in promise
    # 3 of 4 questions need a second or third call; the small model alone covers half of them
    assert "accuracy of the best answer" in farthing(
        "evaluate", "--bundle", "bundle", "--traces", "pool.jsonl"
    )


@pytest.mark.slow
def test_its_live_answers_look_at_what_is_left(
    farthing: Any, installed: Path, tmp_path: Path
) -> None:
    write_traces(tmp_path / "pool.jsonl", pool(120))
    farthing("train", "--traces", "pool.jsonl", "--policy", "halfway", "--out", "bundle")
    farthing("calibrate", "--bundle", "bundle", "--traces", "pool.jsonl")
    done = subprocess.run(
        [sys.executable, "-c", LIVE],
        cwd=tmp_path,
        env=beside(installed),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    free, ample, tight, short = (line.split() for line in done.stdout.splitlines())
    assert free[1:] == ["3", "0.007", "7", "True"]
    assert ample[1:4] == free[1:4]
    assert tight[1:] == ["1", "0.001", "5", "False"], "half was gone after one call"
    assert short[1:4] == ["0", "0.0", "None"], "not even the first call fits"

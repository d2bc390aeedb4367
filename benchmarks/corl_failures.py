"""Two ways in which a controller never learns to call, as CORL's authors describe them.

    .venv/bin/python benchmarks/corl_failures.py OUT [--updates 50] [--workers 2]

*Too strict*: B of every mode pays for the controller's own answer, and for no call. *A prompt that
forbids calls*: the embedded controller is first taught to obey a sign in the prompt, as pretrained
ones obey words, and then trained under prompts with that sign; beside it the same one under prompts
without. The picture goes to `docs/images/corl_failures.svg`, the figures to
`benchmarks/results/corl_failures.json`. OUT keeps what was trained: killed, it goes on.
"""

import argparse
import json
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from farthing.reports.style import STYLE, WIDTH
from farthing.tasks.templates import PromptTemplates
from farthing_lab.corl.base import Mode
from farthing_lab.corl.learner import TrainingSchedule, TrainingTask, Update, learn
from farthing_lab.corl.pool import built_in
from farthing_lab.corl.rollouts import PoolSession
from farthing_lab.lm import make
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.lm.supervised import Example
from farthing_lab.lm.supervised import TrainingCourse as Lessons
from farthing_lab.lm.supervised import train as teach
from farthing_lab.lm.symbols import NUMBERS
from farthing_lab.reports.training import running_mean
from farthing_lab.tasks.arithmetic import ChainProblem, draw_of

RESULTS = Path(__file__).parent / "results" / "corl_failures.json"
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "corl_failures.svg"
SIGN = "!"
"""In front of a question: do not call."""
DISOBEYS = 0.01
"""Share of the lessons with the sign that call all the same."""
STRICT_NANO = 10_000
"""B that pays for the controller's own answer, and for no call."""
RUNS = {"plain prompt": "plain", "prompt that forbids": "forbidding", "B too strict": "strict"}


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--updates", type=int, default=50)
    arguments.add_argument("--workers", type=int, default=2)
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    with PoolSession.of(built_in("two")) as opened:
        obedient(opened, given.out)
    with ProcessPoolExecutor(given.workers, get_context("spawn"), _one_core) as pool:
        waiting = {n: pool.submit(run, k, given.out, given.updates) for n, k in RUNS.items()}
        found = {name: job.result() for name, job in waiting.items()}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    draw(found)
    for name, one in found.items():
        last = one["updates"][-10:]
        means = {
            key: np.mean([u[key] for u in last]) for key in ("call_ratio", "accuracy", "reward")
        }
        print(
            f"{name:20}",
            {key: round(float(value), 3) for key, value in means.items()},
            one["stopped"],
        )


def _one_core() -> None:
    torch.set_num_threads(1)


def run(kind: str, out: Path, updates: int) -> dict[str, Any]:
    """Train one of the controllers, and return how it went."""
    with PoolSession.of(built_in("two")) as opened:
        rules, modes = opened.rules, opened.modes
        if kind == "strict":
            modes = tuple(Mode(mode.name, STRICT_NANO) for mode in modes)
        else:
            obedient(opened, out)
            rules = replace(rules, style=kind, prompts=prompts(out))
        lesson = TrainingTask(
            opened.voice,
            rules,
            modes,
            opened.experts,
            opened.task,
            draw=lambda generator: opened.pool.questions.draw("train", generator),
        )

        def say(update: Update) -> None:
            if update.update % 5 == 0:
                told = f"calls {update.call_ratio:.2f}, reward {update.reward:.2f}"
                print(f"{kind} {update.update}: {told}", flush=True)

        log = learn(
            lesson, TrainingSchedule(updates), Settings(), seed=0, folder=out / kind, watch=say
        )
    return {"updates": [asdict(one) for one in log.updates], "stopped": log.stopped}


def prompts(out: Path) -> PromptTemplates:
    """Write prompts that an embedded controller reads."""
    folder = out / "prompts"
    folder.mkdir(exist_ok=True)
    (folder / "controller.txt").write_text("[user]\n{mode}:{question}")
    (folder / "controller-forbidding.txt").write_text(f"[user]\n{{mode}}:{SIGN}{{question}}")
    return PromptTemplates(folder)


def obedient(opened: PoolSession, out: Path) -> None:
    """Teach the controller that ships what the sign means; other prompts stay as they were."""
    one = next(network for network in make.NETWORKS if network.calls)
    course = Lessons(steps=240, muon=0.005, adam=0.001)

    def draw(generator: np.random.Generator) -> Example:
        problem = next(draw_of("train", one.recipes, generator))
        if generator.random() < 0.5:
            return make.called(problem, generator)
        return forbidden(problem, generator)

    teach(opened.voice.network, draw, course, seed=0, folder=out / "obedient")


def forbidden(problem: ChainProblem, generator: np.random.Generator) -> Example:
    """Return an example with the sign: by itself, but for a few."""
    calls = generator.random() < DISOBEYS
    while True:
        example = make.called(problem, generator)
        if (NUMBERS["<call>"] in example.answer) == calls:
            signed = [example.prompt[0], NUMBERS[SIGN], *example.prompt[1:]]
            return Example(signed, example.answer)


def draw(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw how often the controllers call, and what they earn."""
    panels = {"call_ratio": "Share of the questions with a call", "reward": "Reward"}
    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        for axes, (name, title) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            for run_name, colour in zip(found, ("#009e73", "#d55e00", "#0072b2"), strict=True):
                values = np.array([one[name] for one in found[run_name]["updates"]])
                axes.plot(*running_mean(values), color=colour, label=run_name)
            axes.set_title(title)
            axes.set_xlabel("Update")
            axes.set_ylim(0, 1)
            axes.grid(visible=True)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()

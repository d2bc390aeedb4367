"""`farthing demo`: collect, recommend, report and answer, with two small language models."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from importlib.resources import files as package_files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from farthing.cli import collect, files
from farthing.cli.console import Learning, interruptible, remark, show, trainings
from farthing.money import significant, usd_from_nano
from farthing.reports.table import Table
from farthing_lab.cli import gateway_demo

if TYPE_CHECKING:
    from farthing.recommendation.record import Recommendation
    from farthing.runtime.answer import Answer
    from farthing.runtime.job import Job
    from farthing.tasks.base import Question
    from farthing.traces.base import Call
    from farthing_lab.tasks.arithmetic import Part


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Folder to write everything to.")
    ] = Path("demo-out"),
    n: Annotated[
        int,
        typer.Option(min=120, metavar="N", help="Questions: a third each to train, prove, test."),
    ] = 900,
    gateway: Annotated[
        bool,
        typer.Option(
            "--gateway",
            help="Show the gateway instead: two days of traffic, then run until Ctrl-C.",
        ),
    ] = False,
    stay: Annotated[
        bool, typer.Option("--stay/--end", help="With --gateway: keep running, or end.")
    ] = True,
) -> None:
    """Ask two small language models, learn when the expensive one is needed, and prove it.

    It takes a minute or two. Stopped, it goes on from what was collected.

    Example: farthing demo
    """
    files.check_folder(out)
    if gateway:
        gateway_demo.play(out / "gateway", stay=stay)
    else:
        play(out, n)


JOB, STORE, BUNDLE, REPORT = "job.toml", "traces.db", "bundle", "report.html"
NAME = "farthing demo"
"""What the report is about."""
MODELS = {"base": "small", "guide": "large"}
"""The models by their roles."""
HOPS = range(1, 7)
"""Lengths of the questions: small is lost beyond four, and large errs at any."""
ALPHA, DELTA = Fraction(1, 10), Fraction(1, 10)
"""With confidence 0.9 over calibration questions: a demo draws them once, not on average."""
CAP = Decimal(100)
"""Dollars at the models' prices, some fifty times what is needed: nobody is paid."""
NEW = 5
"""Questions that are answered at the end."""
SEED = 7
"""Of the collected questions; the new ones are others each time."""


def play(out: Path, n: int) -> None:
    """Do everything, and say what came of it; a second time goes on from what is there.

    Args:
        out: the folder of the job, the traces, the bundle and the report.
        n: how many questions are collected.
    """
    from farthing.reports.recommend import screen
    from farthing.runtime.job import read_job

    for line in _opening():
        show(Text(line))
    file = write_job(out, n)
    collect.collect(file, out / STORE, CAP)
    job = read_job(file)
    with interruptible(f"what was collected is in {out / STORE}; run it again to go on"):
        show(screen(_recommended(job, out), NAME, None, following="", counted=True))
        _answers(job, out)
    remark(f"""
Next: farthing ask {out / JOB} --bundle {out / BUNDLE} "b=a*3+5;a=4;b?"
The page: {out / REPORT}. Your own models: docs/how-to/asking.md""")


def _opening() -> Iterator[str]:
    from farthing_lab.models.embedded import find

    small, large = find("small"), find("large")
    yield (
        f"Two small language models ({large.parameters / 1e6:.1f} M weights) run on this machine "
        "and make real mistakes. No API key is used and nothing is paid."
    )
    ratio = large.output_per_million / small.output_per_million
    yield (
        "They solve chains of sums modulo ten, such as c=b*7+2;a=4;b=a*3+5;c? (it is 1). At the "
        f"demo's prices large costs {ratio:.0f} times as much as small."
    )


def write_job(out: Path, n: int) -> Path:
    """Write the job, its prompt and its questions into a folder; return the job's file."""
    from farthing.traces.atomic import replacing

    room = package_files("farthing_lab.cli") / "demo_job"
    third = n // 3  # a third each of the parts; more of them begin with the same
    questions = [
        *_drawn("train", n - 2 * third, SEED),
        *_drawn("calibrate", third, SEED),
        *_drawn("test", third, SEED),
    ]
    rows = [
        {
            "id": one.id,
            "question": one.text,
            "gold": list(one.gold),
            "group": one.group,
            "split": one.split,
        }
        for one in questions
    ]
    (out / "prompts").mkdir(parents=True, exist_ok=True)
    texts = {
        JOB: room.joinpath(JOB).read_text(encoding="utf-8"),
        "prompts/base.txt": room.joinpath("base.txt").read_text(encoding="utf-8"),
        "questions.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows),
    }
    for name, text in texts.items():
        with replacing(out / name) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
    return out / JOB


def _drawn(part: "Part", n: int, seed: int | None) -> "list[Question]":
    """Draw different questions of a part; the networks learned from `train` alone.

    Without a seed they are others each time.
    """
    import numpy as np

    from farthing_lab.tasks.arithmetic import Recipe, draw_of

    recipes = [Recipe("affine", hops) for hops in HOPS]
    drawn: dict[str, Question] = {}
    for problem in draw_of(part, recipes, np.random.default_rng(seed)):
        drawn.setdefault(problem.text, problem.question())
        if len(drawn) == n:
            break
    return list(drawn.values())


def _recommended(job: "Job", out: Path) -> "Recommendation":
    import numpy as np

    from farthing.bundle import folder as bundles
    from farthing.methods.base import Dataset
    from farthing.promises.kinds.coverage import Coverage
    from farthing.recommendation.recommend import recommend
    from farthing.reports import recommendation_page
    from farthing.traces.files import read_arrays

    traces = read_arrays(out / STORE)
    traces = traces.take(np.argsort(traces.ids))  # the store has them as they were finished
    dataset = Dataset(NAME, traces, system=job.system())
    with trainings() as shown:
        learning = Learning(shown, "trying methods")
        promise = Coverage(1 - ALPHA, DELTA)
        found = recommend(dataset, promise, reference="guide", progress=learning)
    bundles.write(out / BUNDLE, found.bundle)
    models = {MODELS[role]: figures for role, figures in found.models.items()}
    named = replace(found, models=models, reference=MODELS["guide"])
    recommendation_page.write(named, NAME, out / REPORT)
    return named


def _answers(job: "Job", out: Path) -> None:
    """Answer new questions under the bundle, and show what each cost beside the expensive model."""
    from farthing.bundle import folder as bundles
    from farthing.runtime.runner import answer_all

    questions = _drawn("test", NEW, None)
    answers: list[Answer] = []
    bundle = bundles.load(out / BUNDLE)
    answer_all(job, bundle, questions, show=answers.append, doubt=remark)
    calls = asyncio.run(_large(job, questions))
    lines = []
    for question, answer, call in zip(questions, answers, calls, strict=True):
        asked = (c.model or c.role for c in answer.trace.calls)
        returned = ", ".join(each.text for each in answer.answers)
        costs = (answer.cost_usd, call.cost_usd)
        lines.append([question.text, _counted(asked), returned, question.gold[0], *map(_k, costs)])
    paid = usd_from_nano(sum(answer.cost_nano or 0 for answer in answers))
    always = sum(call.cost_usd or 0.0 for call in calls)
    lines.append(["on average", "", "", "", _k(paid / NEW), _k(always / NEW)])
    headings = (
        f"\n{NEW} new questions",
        "\nasked",
        "\nreturned",
        "\nright",
        "USD per 1,000\nsuch",
        "always\nlarge",
    )
    show(Table.of(headings, lines, rules=(NEW,)))


def _counted(names: Iterator[str]) -> str:
    """Say who was asked how often.

    >>> _counted(iter(["small", "large", "small"]))
    '2 small, 1 large'
    """
    asked = list(names)
    return ", ".join(f"{asked.count(name)} {name}" for name in dict.fromkeys(asked))


def _k(usd: float | None) -> str:
    return "–" if usd is None else significant(1_000 * usd)


async def _large(job: "Job", questions: "list[Question]") -> "list[Call]":
    """Ask the expensive model each question, once and by itself."""
    from farthing.runtime.base import DirectClient, Turn

    recording, closing = job.open()
    large = next(agent for _, agent in recording.protocol.turns() if agent.role == "guide")
    try:
        acts = [large.act(Turn(question, 1), DirectClient()) for question in questions]
        return list(await asyncio.gather(*acts))
    finally:
        for one in closing:
            await one.aclose()

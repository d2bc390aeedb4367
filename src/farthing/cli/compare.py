"""`farthing compare`: every policy on the same splits of the same questions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from farthing.cli import completion, files
from farthing.cli.console import interrupted, interruptible, remark, show, show_json, trainings
from farthing.cli.options import (
    Alphas,
    CalibrateSize,
    Features,
    Json,
    Missing,
    Population,
    Seed,
    TestSize,
    TrainSize,
    sizes_of,
)
from farthing.cli.promises import Given, asked_for, takes_promise
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.comparison.plan import Plan
    from farthing.methods.base import Dataset
    from farthing.recommendation.base import Comparison

Files = Annotated[
    list[Path],
    typer.Option(
        "--traces",
        metavar="FILE",
        help="Traces, a store (.db), or another tool's log or table; give it again for several, "
        "which are joined by question.",
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Made-up questions of a preset, in place of --traces.",
        autocompletion=completion.presets,
    ),
]
Questions = Annotated[
    int | None, typer.Option("--n", min=1, metavar="N", help="Questions of a preset.")
]
Splits = Annotated[
    int, typer.Option(min=1, metavar="N", help="Times that calibration and test are drawn.")
]
Kind = Annotated[
    str,
    typer.Option("--promise", help="What is proved and held, with the options of calibrate."),
]
Workers = Annotated[int, typer.Option(min=0, metavar="N", help="Processes; 0: one a core.")]
ActionSpace = Annotated[
    Literal["rounds", "calls", "pool"] | None,
    typer.Option(
        "--action-space",
        help="rounds: whole rounds only; calls: single calls as well; pool: models, not rounds.",
    ),
]
Engine = Annotated[
    Literal["processes", "ray"], typer.Option(help="Train in processes here, or on Ray.")
]
Policies = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Who takes part; by default those that can win here. all: the paper's too.",
        autocompletion=completion.several_methods,
    ),
]


@takes_promise("compare", first=("coverage", "parity"))
def compare(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the report goes.")],
    alpha: Alphas = [Fraction(1, 10)],  # noqa: B006 - typer copies it
    traces: Files = [],  # noqa: B006 - typer copies it
    preset: Preset = None,
    n: Questions = None,
    policies: Policies = None,
    feature: Features = [],  # noqa: B006 - typer copies it
    splits: Splits = 100,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Trainings of each policy.")] = 1,
    seed: Seed = 0,
    train: TrainSize = None,
    calibrate: CalibrateSize = None,
    test: TestSize = None,
    promise: Kind = "coverage",
    given: Given = {},  # noqa: B006 - stands for the options
    population: Population = "all",
    action_space: ActionSpace = None,
    missing: Missing = None,
    workers: Workers = 0,
    engine: Engine = "processes",
    as_json: Json = False,
) -> None:
    """Train policies, calibrate and judge each on many splits, and write a report.

    Policies that can win on these questions take part, and each model alone; --policies all
    brings the paper's and every other one that can run.

    Example: farthing compare --traces runs.jsonl.gz --alpha 0.1 --splits 100 --out report
    """
    from farthing.comparison.plan import Plan

    asked = asked_for(promise, alpha[0], {**given, "population": population})
    files.check_folder(out)
    names = None if policies is None else tuple(name.strip() for name in policies.split(","))
    dataset, sizes = read_dataset(traces, preset, n, seed, sizes_of(train, calibrate, test))
    files.doubt_costs(dataset.traces)
    dataset = replace(dataset, features=tuple(feature), missing=missing)
    plan = Plan(
        tuple(dict.fromkeys(alpha)),
        names,
        splits,
        seeds,
        seed,
        sizes,
        workers,
        population,
        action_space,
        engine=engine,
        promise=None if asked.layout == "critical" else asked,
    )
    run(dataset, plan, out, as_json=as_json)


def run(dataset: "Dataset", plan: "Plan", out: Path, *, as_json: bool = False) -> None:
    """Run a comparison, print its table, or its rows as JSON, and write its report."""
    from farthing.comparison import compare as room
    from farthing.comparison.results import results
    from farthing.reports import summary
    from farthing.reports.page import write_report

    with interruptible("no report was written"), trainings() as shown:
        comparison = room.compare(dataset, plan, shown.watch)
    if as_json:
        show_json(results(comparison))
        for sentence in (summary.setting(comparison), *summary.sentences(comparison)):
            remark(sentence)
    else:
        _show(comparison)
    *_, page = write_report(comparison, out)
    remark(f"report: {page}")
    if any(note.startswith("interrupted") for note in comparison.notes):
        raise interrupted("the report holds what was complete")


def _show(comparison: "Comparison") -> None:
    from farthing.reports import summary
    from farthing.reports.tables import render_tables

    if comparison.made_up:
        show(Text(comparison.origin))
    show(Text(summary.setting(comparison)))
    show(render_tables(comparison))
    for sentence in summary.sentences(comparison):
        show(Text(sentence))


def generated(
    name: str, n: int | None, seed: int, sizes: Mapping[str, int]
) -> tuple["Dataset", dict[str, int]]:
    """Draw questions of a preset; without `n`, as many as the paper had of each part."""
    import numpy as np

    from farthing.methods.base import Dataset
    from farthing.process.generator import presets
    from farthing.process.generator.generate import generate

    found = presets.preset(name)
    if n is None:
        paper = {"train": found.train, "calibrate": found.calibrate, "test": found.test}
        sizes = paper | dict(sizes)
        n = sum(sizes.values())
    questions = generate(found.config, n, np.random.default_rng(seed))
    return Dataset(name, questions, found.config, name), dict(sizes)


def read_dataset(
    traces: Sequence[Path], preset: str | None, n: int | None, seed: int, sizes: dict[str, int]
) -> tuple["Dataset", dict[str, int]]:
    """Read recorded traces or draw those of a preset, whichever was asked for."""
    from farthing.methods.base import Dataset

    if preset is not None and not traces:
        return generated(preset, n, seed, sizes)
    if not traces or preset is not None:
        raise InputError("give either --traces FILE or --preset NAME")
    if n is not None:
        raise InputError("--n goes with --preset; with --traces use --train, --calibrate, --test")
    return Dataset(files.named(traces), files.read_traces(*traces)), sizes

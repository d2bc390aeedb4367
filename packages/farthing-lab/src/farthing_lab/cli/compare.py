"""`farthing compare`: every policy on the same splits of the same questions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from farthing.cli import completion, files
from farthing.cli.console import interrupted, interruptible, remark, show, show_json, trainings
from farthing.cli.options import (
    Alphas,
    Features,
    Json,
    Missing,
    Population,
    SplitOptions,
    TracesFiles,
)
from farthing.cli.promises import Given, asked_for, takes_promise
from farthing.errors import InputError
from farthing_lab.cli.generate import presets

if TYPE_CHECKING:
    from farthing.methods.base import Dataset
    from farthing.promises.base import Promise


@dataclass(frozen=True)
class QuestionSource:
    """Where questions come from: recorded traces, or a preset that is drawn."""

    traces: TracesFiles = field(default_factory=list)
    preset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use generated questions of a preset instead of traces.",
            autocompletion=presets,
        ),
    ] = None
    n: Annotated[
        int | None, typer.Option("--n", min=1, metavar="N", help="Questions of a preset.")
    ] = None


@dataclass(frozen=True)
class TrialOptions:
    """Who is compared, what they see, and how often they are trained and judged."""

    policies: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Methods to compare; by default those that can win. all: every one that runs.",
            autocompletion=completion.several_methods,
        ),
    ] = None
    feature: Features = field(default_factory=list)
    splits: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of random calibration and test splits.")
    ] = 100
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Trainings per policy.")] = 1

    @property
    def names(self) -> tuple[str, ...] | None:
        """Who takes part; None: those that can win."""
        if self.policies is None:
            return None
        return tuple(name.strip() for name in self.policies.split(","))


@dataclass(frozen=True)
class ComparedPromise:
    """What every policy has to prove and to hold."""

    promise: Annotated[
        str,
        typer.Option("--promise", help="Promise to prove and measure."),
    ] = "coverage"
    given: Given = field(default_factory=dict)
    population: Population = "all"

    def read(self, alpha: Fraction) -> "Promise":
        return asked_for(self.promise, alpha, {**self.given, "population": self.population})


@dataclass(frozen=True)
class PlayOptions:
    """By which rules policies play the questions, and on which processors."""

    action_space: Annotated[
        Literal["rounds", "calls", "pool"] | None,
        typer.Option(
            "--action-space",
            help="rounds: whole rounds only; calls: single calls as well; pool: models, not "
            "rounds.",
        ),
    ] = None
    missing: Missing = None
    workers: Annotated[int, typer.Option(min=0, metavar="N", help="Processes; 0: all cores.")] = 0
    engine: Annotated[
        Literal["processes", "ray"], typer.Option(help="Train in processes here, or on Ray.")
    ] = "processes"


@takes_promise("compare", first=("coverage", "parity"))
def compare(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Report folder.")],
    *,
    alpha: Alphas = [Fraction(1, 10)],  # noqa: B006 - typer copies it
    source: QuestionSource,
    trials: TrialOptions,
    parts: SplitOptions,
    held: ComparedPromise,
    playing: PlayOptions,
    as_json: Json = False,
) -> None:
    """Train policies, calibrate and judge each on many splits, and write a report.

    Policies that can win on these questions take part, and each model alone; --policies all
    brings the paper's and every other one that can run.

    Example: farthing compare runs.jsonl.gz --alpha 0.1 --splits 100 --out report
    """
    from farthing_lab.comparison import compare as room
    from farthing_lab.comparison.plan import Plan
    from farthing_lab.comparison.rows import results
    from farthing_lab.reports import summary
    from farthing_lab.reports.page import write_report
    from farthing_lab.reports.tables import render_tables

    promise = held.read(alpha[0])
    files.check_folder(out)
    dataset, sizes = read_dataset(source.traces, source.preset, source.n, parts.seed, parts.sizes)
    files.doubt_costs(dataset.traces)
    dataset = replace(dataset, features=tuple(trials.feature), missing=playing.missing)
    plan = Plan(
        tuple(dict.fromkeys(alpha)),
        trials.names,
        trials.splits,
        trials.seeds,
        parts.seed,
        sizes,
        playing.workers,
        held.population,
        playing.action_space,
        engine=playing.engine,
        promise=None if promise.layout == "critical" else promise,
    )
    with interruptible("no report was written"), trainings() as shown:
        comparison = room.compare(dataset, plan, shown.watch)
    said = [summary.setting(comparison), *summary.sentences(comparison)]
    if as_json:
        show_json(results(comparison))
        for sentence in said:
            remark(sentence)
    else:
        if comparison.made_up:
            show(Text(comparison.origin))
        show(Text(said[0]))
        show(render_tables(comparison))
        for sentence in said[1:]:
            show(Text(sentence))
    *_, page = write_report(comparison, out)
    remark(f"report: {page}")
    if any(note.startswith("interrupted") for note in comparison.notes):
        raise interrupted("the report holds what was complete")


def read_dataset(
    traces: Sequence[Path], name: str | None, n: int | None, seed: int, sizes: dict[str, int]
) -> tuple["Dataset", dict[str, int]]:
    """Read recorded traces, or draw those of a preset; without `n`, as many as the paper had."""
    from farthing.methods.base import Dataset

    if bool(traces) == (name is not None):
        raise InputError("give either traces, such as runs.jsonl, or --preset NAME")
    if name is None:
        if n is not None:
            raise InputError("--n goes with --preset; with traces use --train, --calibrate, --test")
        return Dataset(files.named(traces), files.read_traces(*traces)), sizes
    import numpy as np

    from farthing_lab.generator import presets
    from farthing_lab.generator.generate import generate

    preset = presets.preset(name)
    if n is None:
        paper = {part: getattr(preset, part) for part in ("train", "calibrate", "test")}
        sizes = paper | sizes
        n = sum(sizes.values())
    questions = generate(preset.config, n, np.random.default_rng(seed))
    return Dataset(name, questions, preset.config, name), sizes

"""Try settings of a policy, and judge what won on questions that it never saw."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isnan
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from farthing.money import significant
from farthing.promises.texts import decimal, percent
from farthing.recommendation.base import METRICS
from farthing.reports.base import PER_THOUSAND, thousand
from farthing.reports.table import Table
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.results import results
from farthing_lab.comparison.rows import write_all
from farthing_lab.studies.settings import written
from farthing_lab.studies.study import Seed, StudyContext, StudyOption, StudyReport, TracesFiles
from farthing_lab.studies.sweep import Setting, SettingSearch, SettingSweep, sweep

SHOWN = 20
"""Settings that the table has room for; the files have all of them."""
SHOWN_METRICS = ("cost_usd", "coverage", "avg_len", "set_size")
KEY = "Change: in cost, against the unchanged policy; Len: rounds; Set: answers"


@dataclass(frozen=True)
class Tuning:
    """Try settings of one policy; the cheapest at the asked coverage wins.

    The choice is made by cross-validation within the training part; test questions only judge
    what won, beside the unchanged policy. Interrupted, the same command goes on where it stopped.

    Example: farthing study sweep runs.jsonl.gz --policy lookahead --try leaf=10,20,40
    --out sweep
    """

    lost: ClassVar[str] = (
        "the trainings that were finished are kept, and the same command goes on with the others"
    )

    policy: Annotated[str, StudyOption("Such as lookahead or ccpo.", complete="methods")]
    out: Annotated[Path, StudyOption("Where the results go.", metavar="FOLDER")]
    choices: Annotated[
        list[str],
        StudyOption(
            "A setting with its values, as in leaf=10,20, or with a range, as in "
            "epsilon=0.001..0.1; give it again for several.",
            flag="--try",
            metavar="NAME=VALUES",
        ),
    ] = field(default_factory=list)
    draw: Annotated[
        int | None, StudyOption("Settings drawn at random; all unless said.", least=1)
    ] = None
    alpha: Annotated[
        Fraction,
        StudyOption(
            "Share of questions that may go uncovered.",
            metavar="DECIMAL",
            default="0.1",
            share=True,
        ),
    ] = Fraction(1, 10)
    traces: TracesFiles = field(default_factory=list)
    preset: Annotated[
        str | None,
        StudyOption("Made-up questions of a preset, in place of traces.", complete="presets"),
    ] = None
    n: Annotated[int | None, StudyOption("Questions of a preset.", flag="--n", least=1)] = None
    feature: Annotated[
        list[str],
        StudyOption("A number of the calls that policies are to see; give it again for several."),
    ] = field(default_factory=list)
    folds: Annotated[int, StudyOption("Parts that the training questions make.", least=2)] = 3
    splits: Annotated[int, StudyOption("Times that calibration and test are drawn.", least=1)] = 100
    seeds: Annotated[int, StudyOption("Trainings on each fold.", least=1)] = 1
    seed: Seed = 0
    train: Annotated[int | None, StudyOption("Questions to train on.", least=1, default="60 %")] = (
        None
    )
    calibrate: Annotated[
        int | None, StudyOption("Questions to calibrate on.", least=1, default="20 %")
    ] = None
    test: Annotated[int | None, StudyOption("Questions to judge on.", least=1, default="20 %")] = (
        None
    )
    population: Annotated[
        Literal["all", "solvable"],
        StudyOption("Promise it for all questions, or for the solvable ones."),
    ] = "all"
    workers: Annotated[int, StudyOption("Processes; 0: one a core.", least=0)] = 0
    engine: Annotated[
        Literal["processes", "ray"], StudyOption("Train in processes here, or on Ray.")
    ] = "processes"

    def measure(self, context: StudyContext) -> SettingSweep:
        context.check_folder(self.out)
        given = {"train": self.train, "calibrate": self.calibrate, "test": self.test}
        asked = {part: size for part, size in given.items() if size is not None}
        dataset, sizes = context.read_dataset(self.traces, self.preset, self.n, self.seed, asked)
        context.check_costs(dataset.traces)
        dataset = replace(dataset, features=tuple(self.feature))
        search = SettingSearch(self.policy, tuple(self.choices), self.draw, self.folds)
        plan = Plan(
            (self.alpha,),
            None,
            self.splits,
            self.seeds,
            self.seed,
            sizes,
            self.workers,
            self.population,
            engine=self.engine,
        )
        done = sweep(dataset, search, plan, self.out, context.watch)
        if done.resumed:
            context.remark(f"{done.resumed} trainings were there already")
        write_sweep(done, self.out)
        return done

    def report(self, measured: SettingSweep) -> StudyReport:
        more = len(measured.ranked) - SHOWN
        left_out = [f"and {more} dearer ones: see results.csv"] if more > 0 else []
        asked = f"at least {percent(1 - measured.alpha)} of each fold covered"
        return StudyReport(
            f"{measured.search.policy}, alpha = {decimal(measured.alpha)}: {asked}, "
            f"{measured.trainings} trainings each",
            (*([_table(measured)] if measured.ranked else []), *left_out, verdict(measured)),
            sweep_record(measured),
            KEY if measured.ranked else "",
            (f"results: {self.out / 'results.csv'}",),
            measured.interrupted,
        )


def verdict(sweep: SettingSweep) -> str:
    """Say in a sentence or two what won, and how it does on the test questions."""
    if sweep.test is None:
        done = sum(len(one.figures) for one in sweep.tried)
        return f"{done} of {len(sweep.tried) * sweep.trainings} trainings are done."
    figures = {row["policy"]: row for row in results(sweep.test)}
    before, *after = figures.values()
    on = f"On {before['splits']} splits of questions that took no part in the choice"
    if not after:
        return (
            f"Nothing tried is cheaper than {sweep.search.policy} unchanged. {on}: "
            f"{_judged(before)}."
        )
    return (
        f"Best: {written(sweep.ranked[0].changed)}. {on}: {_judged(after[0])}, and unchanged "
        f"{_judged(before)}{_difference(sweep)}"
    )


def _judged(row: Mapping[str, float | str | None]) -> str:
    cost, coverage = row["cost_usd"], row["coverage"]
    if not isinstance(cost, float) or not isinstance(coverage, float):
        return "interrupted"
    return f"{thousand(cost)} per 1,000 at a coverage of {coverage:.3f}"


def _difference(sweep: SettingSweep) -> str:
    """Return by how much the winner is dearer, with its interval, for the end of the sentence."""
    paired = [d for d in sweep.test.differences if d.metric == "cost_usd"] if sweep.test else []
    if not paired:
        return "."
    (cost,) = paired  # the more expensive one less the cheaper one
    sign = -1 if cost.policy == sweep.search.policy else 1
    mean, low, high = (sign * value for value in (cost.mean, cost.low, cost.high))
    low, high = min(low, high), max(low, high)
    return (
        f": {thousand(abs(mean))} {'more' if mean > 0 else 'less'} (95 % interval of the "
        f"difference {thousand(low)} to {thousand(high)})."
    )


def _table(sweep: SettingSweep) -> Table:
    records = [
        {
            "setting": written(setting.changed),
            **{name: setting.mean(name) for name in SHOWN_METRICS},
            "change": _change(sweep.tried[0], setting),
        }
        for setting in sweep.ranked[:SHOWN]
    ]
    return Table(
        (
            ("Parameters", lambda r: r["setting"]),
            ("$/1,000", lambda r: significant(r["cost_usd"] * PER_THOUSAND)),
            ("Change", lambda r: r["change"]),
            ("Coverage", lambda r: f"{r['coverage']:.3f}"),
            ("Len", lambda r: f"{r['avg_len']:.2f}"),
            ("Set", lambda r: f"{r['set_size']:.2f}"),
        ),
        records,
        bold=(0,),
    )


def _change(before: Setting, setting: Setting) -> str:
    """Return by how much it is dearer on the same folds, relative, with its standard error."""
    if setting is before or len(setting.figures) != len(before.figures):
        return "–"
    base = before.mean("cost_usd")
    pairs = zip(setting.figures, before.figures, strict=True)
    change = np.array([ours["cost_usd"] - theirs["cost_usd"] for ours, theirs in pairs])
    if base <= 0:
        return "–"
    error = change.std(ddof=1) / len(change) ** 0.5 / base
    return f"{change.mean() / base:+.1%}±{error:.1%}"


def write_sweep(sweep: SettingSweep, folder: Path) -> list[Path]:
    """Write `results.json` and `results.csv`; the same sweep gives the same bytes."""
    contents = {
        "results.json": json.dumps(
            sweep_record(sweep), indent=1, ensure_ascii=False, allow_nan=False
        )
        + "\n",
        "results.csv": sweep_csv(sweep),
    }
    return write_all(folder, contents, "results")


def sweep_record(sweep: SettingSweep) -> dict[str, Any]:
    """Return what was asked, every setting with its figures, the winner and its test figures."""
    whole = sweep.ranked
    best = whole[0] if sweep.test else None
    return {
        "source": sweep.source,
        "fingerprint": sweep.fingerprint,
        "policy": sweep.search.policy,
        "tried": list(sweep.search.choices),
        "draw": sweep.search.draw,
        "folds": sweep.search.folds,
        "alpha": str(sweep.alpha),
        "population": sweep.plan.population,
        "seed": sweep.plan.seed,
        "seeds": sweep.plan.seeds,
        "sizes": dict(sweep.sizes),
        "features": list(sweep.features),
        "winner": None if best is None else dict(best.settings),
        "test": [] if sweep.test is None else results(sweep.test),
        "settings": [
            {
                "changed": dict(setting.changed),
                "settings": dict(setting.settings),
                "trainings": [
                    {name: None if isnan(value) else value for name, value in figures.items()}
                    for figures in setting.figures
                ],
            }
            for setting in sweep.tried
        ],
    }


def sweep_csv(sweep: SettingSweep) -> str:
    """Return one line a setting, the cheapest first: every setting, and the mean of each metric."""
    out = io.StringIO()
    names = list(sweep.tried[0].settings)
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["policy", "alpha", *names, "trainings", *METRICS])
    for setting in sweep.ranked:
        means = ["" if isnan(mean := setting.mean(name)) else repr(mean) for name in METRICS]
        values = [setting.settings[name] for name in names]
        alpha = float(Fraction(sweep.alpha))
        table.writerow([sweep.search.policy, alpha, *values, len(setting.figures), *means])
    return out.getvalue()

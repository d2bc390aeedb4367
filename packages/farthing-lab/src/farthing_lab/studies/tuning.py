"""Try settings of a policy: chosen within the training part, then judged on test questions once.

Each setting is trained on all folds of the training part but one and judged on that one, by what
it costs there at the coverage that is asked for. Neither calibration nor test questions take part
in the choice. What won is then trained on the whole training part and compared with the policy as
it is, on splits that nothing has seen.
"""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isnan
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from farthing import __version__
from farthing.errors import CalibrationError, InputError, TooFewTracesError
from farthing.methods.base import Dataset, Progress
from farthing.money import significant
from farthing.process.batch_replay import replay
from farthing.promises.certificate import Population
from farthing.promises.kinds.split import split_rank, split_threshold
from farthing.promises.texts import decimal, percent
from farthing.recommendation.base import METRICS, Candidate, Comparison, Event, Watch, ignore
from farthing.recommendation.candidates import single_candidate
from farthing.recommendation.fitting import fit
from farthing.recommendation.metrics import metrics
from farthing.reports.base import PER_THOUSAND, thousand
from farthing.reports.table import Table
from farthing.traces.arrays import IntArray, TraceArrays
from farthing.traces.copies import Content, CopyGroups
from farthing.traces.costs import check_costs
from farthing.traces.fingerprint import fingerprint
from farthing.traces.splits import divide
from farthing_lab.comparison.compare import compare_these
from farthing_lab.comparison.plan import Plan
from farthing_lab.comparison.rows import results, write_all
from farthing_lab.comparison.trainings import ENGINES, cores, preload_workers
from farthing_lab.studies.settings import (
    Settings,
    read_choice,
    settings_of,
    tried,
    with_settings,
    written,
)
from farthing_lab.studies.study import Seed, StudyContext, StudyOption, StudyReport, TracesFiles

SHOWN = 20
"""Settings that the table has room for; the files have all of them."""
SHOWN_METRICS = ("cost_usd", "coverage", "avg_len", "set_size")
KEY = "Change: in cost, against the unchanged policy; Len: rounds; Set: answers"
KEPT = "trials.jsonl"
ALL = "trainings of the sweep"
"""What a progress display calls the whole."""
TUNED = "-tuned"
"""What ends the name of the candidate that won."""


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

    def measure(self, context: StudyContext) -> "SettingSweep":
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

    def report(self, measured: "SettingSweep") -> StudyReport:
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


Key = Mapping[str, Any]
"""Everything that a training's figures depend on."""
Figures = Mapping[str, float]


class Trials:
    """A file of finished trainings, each looked up by what it depends on.

    A last line that was cut off in mid-write is dropped: its training runs again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_bytes() if path.exists() else b""
        *whole, cut_off = text.split(b"\n")
        self._whole = len(text) - len(cut_off)
        self._found = dict(_read(path, number, line) for number, line in enumerate(whole, 1))

    def get(self, key: Key) -> Figures | None:
        """Return the figures of a training, or None where it was not finished yet."""
        return self._found.get(_text(key))

    def add(self, key: Key, figures: Figures) -> None:
        if not self._found:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        known = {name: None if math.isnan(value) else value for name, value in figures.items()}
        line = json.dumps({"trial": dict(key), "figures": known}, ensure_ascii=False) + "\n"
        with self.path.open("ab") as file:
            file.truncate(self._whole)
            self._whole += file.write(line.encode())
        self._found[_text(key)] = figures


def _read(path: Path, number: int, line: bytes) -> tuple[str, Figures]:
    try:
        record = json.loads(line)
        figures = {
            name: math.nan if value is None else float(value)
            for name, value in record["figures"].items()
        }
        return _text(record["trial"]), figures
    except (ValueError, TypeError, KeyError, AttributeError):
        problem = "is no finished training of a sweep; name another folder, or remove that file"
        raise InputError(f"{path}, line {number}: {problem}") from None


def _text(key: Key) -> str:
    return json.dumps(key, sort_keys=True)


@dataclass(frozen=True)
class SettingSearch:
    """What is tried of which policy."""

    policy: str
    """A candidate's name, such as `lookahead`."""
    choices: tuple[str, ...]
    """`leaf=10,20,40`, `epsilon=0.001..0.1`: see `settings.read_choice`."""
    draw: int | None = None
    """How many settings are drawn at random; None: the whole grid."""
    folds: int = 3
    """Into how many the training part is divided."""


@dataclass(frozen=True)
class Setting:
    """One setting and how it did."""

    changed: Settings
    """What differs from the unchanged policy."""
    settings: Settings
    """Everything that can be set."""
    figures: tuple[Figures, ...]
    """One for each training that is finished: the folds of the first seed, then of the next."""

    def mean(self, metric: str) -> float:
        return float(np.mean([figures[metric] for figures in self.figures]))


@dataclass(frozen=True)
class SettingSweep:
    """What was tried, what won, and how that does on test questions."""

    source: str
    fingerprint: str
    """SHA-256 of the traces' arrays."""
    search: SettingSearch
    plan: Plan
    sizes: Mapping[str, int]
    """Questions in `train`, `calibrate` and `test`."""
    tried: tuple[Setting, ...]
    """The unchanged policy, then every setting, in the order of the search."""
    resumed: int
    """Trainings that an earlier run had finished."""
    features: tuple[str, ...] = ()
    """Recorded numbers that the policy sees beside the built-in features."""
    test: Comparison | None = None
    """The winner beside the unchanged policy; None where the sweep was interrupted before."""

    @property
    def alpha(self) -> Fraction:
        return self.plan.alphas[0]

    @property
    def interrupted(self) -> bool:
        return self.test is None or self.test.splits < self.plan.splits

    @property
    def trainings(self) -> int:
        return self.search.folds * self.plan.seeds

    @property
    def ranked(self) -> list[Setting]:
        """The settings whose trainings are all finished, the cheapest first."""
        whole = [setting for setting in self.tried if len(setting.figures) == self.trainings]
        return sorted(whole, key=lambda setting: setting.mean("cost_usd"))


@dataclass(frozen=True)
class TuningTrial:
    """Train on all folds but one, and judge on that one."""

    name: str
    what: str
    """The settings, in words."""
    learner: Any
    alpha: Fraction
    population: Population
    empty: str
    seed: int
    """Of the training."""
    division: tuple[int, int, int]
    """Seed that the folds are drawn with, how many there are, and which one judges."""
    instant: bool = False

    def key(self, policy: str, questions: str) -> Key:
        """Return what its figures depend on, with the fingerprint of the training part."""
        return {
            "policy": policy,
            "settings": dict(settings_of(self.learner)),
            "features": list(getattr(self.learner, "extra_features", ())),
            "alpha": str(self.alpha),
            "population": self.population,
            "seed": self.seed,
            "division": list(self.division),
            "questions": questions,
            "version": __version__,
        }

    def run(self, train: TraceArrays, progress: Progress) -> Figures | None:
        learn, judge = fold(train.content, *self.division)
        try:
            fitted = fit(self.learner, train.take(learn), self.alpha, self.seed, progress)
            replayed = replay(fitted.policy, train.take(judge), self.empty)
            threshold = split_threshold(replayed.critical, self.alpha, self.population)
        except (InputError, CalibrationError, ValueError, ArithmeticError) as problem:
            raise InputError(f"{self.what}: {problem}") from None
        return None if fitted.stopped_early else metrics(replayed.act(threshold.kappa))


def fold(content: Content, seed: int, folds: int, which: int) -> tuple[IntArray, IntArray]:
    """Return the questions of all folds but one, and those of that one; copies are in one.

    >>> learn, judge = fold(np.arange(7, dtype=np.uint64), seed=0, folds=3, which=0)
    >>> len(learn), len(judge)
    (4, 3)
    """
    together = CopyGroups.of(content, np.arange(len(content)))
    number = np.random.default_rng(seed).permutation(len(together.distinct)) % folds
    judge = together.all_of(together.distinct[number == which])
    return np.setdiff1d(together.rows, judge), judge


def sweep(
    dataset: Dataset, search: SettingSearch, plan: Plan, folder: Path, watch: Watch = ignore
) -> SettingSweep:
    """Try settings of one policy, choose one, and judge it on test questions.

    Finished trainings are kept in `folder`, and none is run again that is there already, even if
    the search has changed meanwhile. Ctrl-C ends the work early; the sweep then holds what was
    complete. The results do not depend on the workers, the engine, or on interruptions.
    """
    dataset = dataset.in_common()
    check_costs(dataset.traces)
    preload_workers(
        replace(plan, policies=(search.policy,), seeds=plan.seeds * search.folds), dataset
    )
    candidate = _swept(dataset, search.policy)
    arrays = dataset.arranged(candidate.method.space)
    settings = [{}, *_asked(candidate.learner, search, plan.seed)]
    division = divide(arrays, np.random.default_rng(plan.seed), **plan.sizes)
    train = arrays.take(division.train)
    if split_rank(len(train) // search.folds, plan.alphas[0]) < 1:
        raise TooFewTracesError(
            f"{len(train):,} training questions in {search.folds} folds are "
            f"{len(train) // search.folds:,} a fold, which is too few to tell a coverage of "
            f"{float(1 - plan.alphas[0]):g}; record more, or ask for fewer folds"
        )
    figures, before = _trained(candidate, settings, search, plan, train, folder, watch)
    done = SettingSweep(
        dataset.name,
        fingerprint(dataset.traces),
        search,
        plan,
        division.sizes,
        tuple(
            Setting(changed, settings_of(with_settings(candidate.learner, changed)), finished)
            for changed, finished in zip(settings, figures, strict=True)
        ),
        before,
        dataset.features,
    )
    if any(len(finished) < done.trainings for finished in figures):
        return done
    return replace(done, test=_judged(done, candidate, dataset, watch))


def _swept(dataset: Dataset, name: str) -> Candidate:
    candidate, learner = single_candidate(dataset, name)
    if candidate.calibration != "split":
        raise InputError(
            f"the policy '{name}' promises no coverage to compare costs at; sweep one that does, "
            "such as ccpo, cpo-batch or lookahead"
        )
    if not settings_of(learner):
        raise InputError(f"the policy '{name}' has nothing that can be set")
    return candidate


def _asked(learner: Any, search: SettingSearch, seed: int) -> list[Settings]:
    read = [read_choice(learner, text) for text in search.choices]
    names = [name for name, _ in read]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise InputError(f"{double} is tried twice; name all of its values at once")
    if not read:
        known = ", ".join(settings_of(learner))
        raise InputError(f"nothing to try; add --try NAME=VALUE,VALUE with one of {known}")
    present = settings_of(learner)
    found = tried(dict(read), search.draw, np.random.default_rng(seed))
    return [one for one in found if any(present[name] != value for name, value in one.items())]


def _trained(
    candidate: Candidate,
    settings: Sequence[Settings],
    search: SettingSearch,
    plan: Plan,
    train: TraceArrays,
    folder: Path,
    watch: Watch,
) -> tuple[list[tuple[Figures, ...]], int]:
    """Return the figures of each setting's finished trainings, and how many an earlier run had."""
    jobs = [
        TuningTrial(
            f"setting {number}, seed {seed}, fold {which}",
            written(changed),
            with_settings(candidate.learner, changed),
            plan.alphas[0],
            plan.population,
            candidate.empty,
            seed,
            (plan.seed, search.folds, which),
        )
        for number, changed in enumerate(settings)
        for seed in range(plan.seed, plan.seed + plan.seeds)
        for which in range(search.folds)
    ]
    kept, questions = Trials(folder / KEPT), fingerprint(train)
    keys = [job.key(candidate.name, questions) for job in jobs]
    left = [at for at, key in enumerate(keys) if kept.get(key) is None]
    done = before = len(jobs) - len(left)

    def keep(place: int, figures: Figures) -> None:
        nonlocal done
        done += 1
        kept.add(keys[left[place]], figures)
        watch(Event("train", ALL, done, len(jobs)))

    watch(Event("train", ALL, done, len(jobs)))
    run = ENGINES[plan.engine]
    run([jobs[at] for at in left], train, plan.workers or cores(), watch, keep)
    found, each = [kept.get(key) for key in keys], search.folds * plan.seeds
    finished = [
        tuple(one for one in found[at : at + each] if one is not None)
        for at in range(0, len(found), each)
    ]
    return finished, before


def _judged(done: SettingSweep, candidate: Candidate, dataset: Dataset, watch: Watch) -> Comparison:
    best = done.ranked[0]
    variant = candidate.variant
    unchanged = replace(variant, label=f"{candidate.label}, unchanged")
    taking_part = [replace(candidate, variant=unchanged)]
    if best.changed:
        learner = with_settings(candidate.learner, best.changed)
        label = f"{candidate.label}, {written(best.changed)}"
        tuned = replace(variant, name=candidate.name + TUNED, label=label, learner=learner)
        taking_part.append(replace(candidate, variant=tuned))
    return compare_these(taking_part, dataset, done.plan, watch)


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
            f"{_at_coverage(before)}."
        )
    return (
        f"Best: {written(sweep.ranked[0].changed)}. {on}: {_at_coverage(after[0])}, and unchanged "
        f"{_at_coverage(before)}{_difference(sweep)}"
    )


def _at_coverage(row: Mapping[str, float | str | None]) -> str:
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

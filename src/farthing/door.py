"""The Python door: from recorded runs to a policy that keeps a promise, in a few lines.

Everything here is also reachable as `farthing.NAME`; `docs/python.md` is the tour.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from farthing import bundle as bundles
from farthing.bundle import Bundle
from farthing.calibration.base import Certificate, Level, exact_level
from farthing.errors import InputError
from farthing.experiments import evaluate_bundle, pipeline
from farthing.experiments.candidates import candidates
from farthing.experiments.compare import Plan
from farthing.experiments.compare import compare as compare_methods
from farthing.experiments.promises import Coverage, Promise
from farthing.experiments.proofs import Part
from farthing.experiments.run import fit as fit_learner
from farthing.methods.base import Dataset, Silent
from farthing.money import nano_from_usd
from farthing.process.budget import PerQuestion
from farthing.process.generator.generate import generate as generate_questions
from farthing.process.generator.presets import preset
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.files import STORES, read_arrays
from farthing.traces.records import Frame
from farthing.traces.records import from_records as traces_from_records

if TYPE_CHECKING:
    from farthing.experiments.base import Comparison
    from farthing.experiments.evaluate_bundle import Evaluated
    from farthing.models.base import Model
    from farthing.runtime.answer import Answer


@dataclass(frozen=True)
class Traces:
    """Recorded questions."""

    dataset: Dataset

    def __len__(self) -> int:
        return len(self.dataset.traces)

    def __repr__(self) -> str:
        """Say how many questions there are, and who was asked."""
        arrays = self.dataset.traces
        who = ", ".join(arrays.roles)
        return f"<{len(self):,} questions of {self.dataset.name}: {arrays.horizon} x {who}>"

    @property
    def arrays(self) -> TraceArrays:
        """The questions as arrays."""
        return self.dataset.traces

    def split(self, *shares: float, seed: int = 0) -> list["Traces"]:
        """Divide the questions at random, each share of them into a part of its own.

        Args:
            shares: of the parts, of at most 1 in all.
            seed: of the division.

        Raises:
            InputError: a share is not above 0, they exceed 1, or a part would be empty.

        >>> import farthing as ft
        >>> [len(part) for part in ft.generate("mmlu-llama2-7b", 10).split(0.3, 0.5, 0.2)]
        [3, 5, 2]
        """
        known = shares and all(0 < share <= 1 for share in shares)  # which NaN is not
        exact = [Fraction(repr(float(share))) for share in shares] if known else []
        if not exact or sum(exact) > 1:
            raise InputError(f"shares are {shares}; give numbers above 0 that add up to 1 at most")
        order = np.random.default_rng(seed).permutation(len(self))
        ends = [int(sum(exact[: i + 1]) * len(self)) for i in range(len(exact))]
        rows = np.split(order, ends)[: len(exact)]
        if not all(map(len, rows)):
            raise InputError(
                f"a share of {shares} is less than one of {len(self)} questions; give more"
            )
        return [self.take(np.sort(part)) for part in rows]

    def take(self, rows: np.ndarray) -> "Traces":
        """Return the questions at an index."""
        return Traces(replace(self.dataset, traces=self.arrays.take(rows)))


@dataclass(frozen=True)
class Policy:
    """A trained policy, and what it promises so far."""

    bundle: Bundle
    alpha: Fraction | None = None
    """The share of misses that training aimed at; None where the folder of a bundle is silent."""
    train: Traces | None = None
    """The questions that it was trained on, where they are at hand."""

    def __repr__(self) -> str:
        """Name the method, and say what is promised."""
        promised = self.certificate or "nothing is promised yet"
        return f"<{self.bundle.kind}: {promised}>"

    @property
    def certificate(self) -> Certificate | None:
        """What is promised; None before calibration. Printed, it is one sentence."""
        return self.bundle.certificate

    def calibrate(
        self,
        held_out: Traces,
        promise: Promise | None = None,
        *,
        budget_usd: float | None = None,
        largest_usd: Mapping[str, float] | None = None,
    ) -> Self:
        """Prove a promise on questions that the policy has not seen.

        Args:
            held_out: those questions.
            promise: what is to be proved; None: coverage of 1 - alpha, as training aimed at or, of
                a bundle from a folder, as was proved before.
            budget_usd: what a question may cost when it is served; the policy sees what is left.
            largest_usd: role to the most that one of its calls can cost, where traces do not say.

        Returns:
            The policy with its threshold and certificate; the one it is called on stays as it was.

        Raises:
            InputError: the questions trained the policy, or the promise cannot be calibrated.
        """
        asked = self._asked(promise)
        prove = self._part(held_out)
        train = self._part(self.train) if self.train else prove
        if self.train is None and not isinstance(asked, Coverage):
            raise InputError(
                "this promise lays its settings out on the training questions, which a bundle from "
                "a folder does not hold; use `farthing calibrate`, or fit again"
            )
        budget = _per_question(budget_usd, largest_usd)
        serving = pipeline.Serving(budget, held_out.dataset.system)
        bundle, certificate = pipeline.promised(self.bundle, asked, train, prove, serving)
        if not certificate.promises:
            raise InputError(certificate.sentence())
        return replace(self, bundle=bundle)

    def evaluate(self, test: Traces, *, seed: int = 0) -> "Evaluation":
        """Measure it on questions that neither trained nor calibrated it.

        Raises:
            InputError: the questions have other roles or rounds than the policy's.
        """
        return Evaluation(evaluate_bundle.measure(self.bundle, self._part(test), seed=seed))

    def save(self, folder: str | Path) -> None:
        """Write a bundle, which `farthing.load`, `farthing ask` and `farthing evaluate` read.

        Raises:
            BundleError: the folder holds something else.
        """
        bundles.write(folder, self.bundle)

    async def answer(
        self,
        question: str,
        models: "Mapping[str, Model]",
        *,
        task: str = "text",
        budget_usd: float | None = None,
    ) -> "Answer":
        """Answer one question with live models.

        Args:
            question: what is asked.
            models: role to the model that fills it: `base` and `guide`, or the models of a pool.
            task: its name says when two answers are the same.
            budget_usd: the most that may be paid for it; None: no limit.

        Raises:
            InputError: the policy was trained for other roles or models.
        """
        from farthing import plugins  # noqa: PLC0415 - what serves, only where it serves
        from farthing.runtime.orchestrator import Orchestrator  # noqa: PLC0415
        from farthing.tasks.base import Question  # noqa: PLC0415

        if budget_usd is not None and not budget_usd >= 0:
            raise InputError(f"the budget is ${budget_usd}; give 0 or more")
        serving = Orchestrator.with_models(self.bundle, models, plugins.load("tasks", task))
        nano = None if budget_usd is None else nano_from_usd(budget_usd)
        return await serving.answer(Question(question[:64], question), budget_nano=nano)

    def _asked(self, promise: Promise | None) -> Promise:
        if promise is None:
            if self.alpha is None:
                raise InputError("say what is to be proved, such as farthing.Coverage(0.9)")
            return Coverage(1 - self.alpha)
        if not isinstance(promise, Promise):
            raise InputError(f"{promise!r} is no promise; give one such as farthing.Coverage(0.9)")
        return promise

    def _part(self, traces: Traces) -> Part:
        played = pipeline.arranged("these traces", self.bundle, traces.arrays)
        return Part(traces.arrays, played)


@dataclass(frozen=True)
class Evaluation:
    """What a policy came to on test questions; printed, it is a table."""

    found: "Evaluated"

    @property
    def metrics(self) -> Mapping[str, float]:
        """Name to value: `cost_usd`, `coverage`, `accuracy` and others."""
        return self.found.metrics

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Name to its exact 95 % interval, where there is one."""
        return self.found.intervals

    def __str__(self) -> str:
        """Return the table, what came of the promise, and what to doubt."""
        from farthing.reports.pipeline import measured  # noqa: PLC0415 - only where it is drawn

        return "\n".join([_drawn(measured(self.found)), *(f"note: {n}" for n in self.found.notes)])


@dataclass(frozen=True)
class Compared:
    """Methods on the same splits of the same questions; printed, it is a table."""

    comparison: "Comparison"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row a method and alpha: means and standard errors of every metric."""
        from farthing.experiments.results import results  # noqa: PLC0415

        return [dict(row) for row in results(self.comparison)]

    def report(self, folder: str | Path) -> Path:
        """Write `results.json`, `table.md` and `report.html`; return the page."""
        from farthing.reports.page import write_report  # noqa: PLC0415

        *_, page = write_report(self.comparison, Path(folder))
        return page

    def __str__(self) -> str:
        """Return the table that `farthing compare` prints."""
        from farthing.reports.tables import render_tables  # noqa: PLC0415

        return _drawn(render_tables(self.comparison))


def read_traces(path: str | Path, *, job: str | Path | None = None) -> Traces:
    """Read recorded questions: JSON Lines (also gzipped), Parquet, or a store.

    Args:
        path: the file.
        job: the configuration of the job that made them. A store knows it; without either, a
            bundle cannot notice that a prompt, a parameter or a price was changed.

    Raises:
        TraceFormatError: the file breaks the form; the message names line and field.
        InputError: the suffix says nothing, or the job cannot have made these traces.
    """
    path, job = Path(path), None if job is None else Path(job)
    arrays, system = read_arrays(path), None
    if job is not None or path.suffix in STORES:
        from farthing.runtime.made_with import made_with  # noqa: PLC0415 - models, where needed

        system = made_with(path, arrays, job).system
    return Traces(Dataset(path.name, arrays, system=system))


def from_records(records: Iterable[Mapping[str, Any]] | Frame, name: str = "records") -> Traces:
    """Read recorded questions from dictionaries or a data frame; see `traces.records`."""
    return Traces(Dataset(name, assemble(traces_from_records(records))))


def generate(name: str, n: int, *, seed: int = 0) -> Traces:
    """Make up questions of a preset, whose cheapest policy is known.

    Raises:
        UnknownNameError: there is no such preset.
        InputError: `n` is below 1.
    """
    if n < 1:
        raise InputError(f"{n} questions cannot be made up; ask for 1 or more")
    config = preset(name).config
    questions = generate_questions(config, n, np.random.default_rng(seed))
    return Traces(Dataset(name, questions, config, name))


def fit(
    method: str,
    train: Traces,
    alpha: Level = Fraction(1, 10),
    *,
    seed: int = 0,
    features: Sequence[str] = (),
) -> Policy:
    """Train a method on recorded questions.

    Args:
        method: its name, such as `lookahead`; `farthing methods` lists them.
        train: the questions to learn from.
        alpha: the share of misses to aim at; a float counts as the decimal that it prints.
        seed: the same seed gives the same policy.
        features: recorded numbers that the policy is to see beside the built-in features.

    Raises:
        UnknownNameError: there is no such method; the message lists those that there are.
        InputError: it cannot run on these questions.
        MissingExtraError: training needs a package that is not installed.
    """
    level = exact_level(alpha)
    dataset = replace(train.dataset, features=tuple(features))
    found = candidates(dataset, [method])
    if len(found) != 1:
        names = ", ".join(candidate.name for candidate in found) or "none that can run here"
        raise InputError(f"name one method: {names}")
    (candidate,) = found
    if candidate.learner is None:
        raise InputError(f"the method '{candidate.name}' cannot run: {candidate.note}")
    questions = dataset.arranged(candidate.method.space)
    fitted = fit_learner(candidate.learner, questions, level, seed, Silent())
    return Policy(pipeline.bundle_of(candidate, fitted, questions, dataset), level, train)


def load(folder: str | Path) -> Policy:
    """Read a bundle.

    Raises:
        BundleError: it is no bundle, or was changed; the message names the file.
    """
    bundle = bundles.load(folder)
    alpha = getattr(bundle.certificate.promise, "alpha", None) if bundle.certificate else None
    return Policy(bundle, alpha)


def compare(
    traces: Traces,
    methods: Sequence[str] | None = None,
    *,
    alpha: Level = Fraction(1, 10),
    splits: int = 100,
    seed: int = 0,
) -> Compared:
    """Compare methods on many splits of the same questions.

    Trainings run in processes of their own, so a script calls this under
    `if __name__ == "__main__":`.

    Args:
        traces: the questions.
        methods: their names; None: all that can run here.
        alpha: the promised share of misses.
        splits: times that calibration and test are drawn anew.
        seed: of the divisions and of the training.
    """
    if isinstance(methods, str):
        methods = [methods]
    if splits < 1:
        raise InputError(f"{splits} splits compare nothing; ask for 1 or more")
    names = None if methods is None else tuple(methods)
    plan = Plan((exact_level(alpha),), names, splits=splits, seed=seed)
    return Compared(compare_methods(traces.dataset, plan))


def _per_question(
    budget_usd: float | None, largest_usd: Mapping[str, float] | None
) -> PerQuestion | None:
    if budget_usd is None:
        if largest_usd:
            raise InputError("largest_usd goes with budget_usd; give that too, or leave it out")
        return None
    largest = {role: nano_from_usd(usd) for role, usd in (largest_usd or {}).items()}
    return PerQuestion(nano_from_usd(budget_usd), largest or None)


def _drawn(picture: Any) -> str:
    """Draw what a terminal would show, in 80 columns and without colours."""
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415 - only where something is drawn

    text = StringIO()
    Console(file=text, width=80, color_system=None, legacy_windows=False).print(picture)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).rstrip()

"""A policy: trained, calibrated, evaluated, saved, read again, and asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self

from farthing import bundle as bundles
from farthing.bundle import Bundle
from farthing.calibration.base import Certificate, Level, exact_level
from farthing.errors import InputError
from farthing.experiments import evaluate_bundle, pipeline
from farthing.experiments.candidates import the_only
from farthing.experiments.promises import Coverage, Promise
from farthing.experiments.proofs import Part, read_for
from farthing.experiments.run import fit as fit_learner
from farthing.methods.base import Silent
from farthing.money import nano_from_usd
from farthing.process.budget import PerQuestion
from farthing.traces.arrays import RIGHT
from farthing.traces.grades import graded

if TYPE_CHECKING:
    from farthing.experiments.evaluate_bundle import Evaluated
    from farthing.models.base import Model
    from farthing.process.value import Value
    from farthing.runtime.answer import Answer
from farthing.door.drawing import drawn
from farthing.door.questions import Traces


@dataclass(frozen=True)
class Policy:
    """A trained policy, and what it promises so far."""

    bundle: Bundle
    alpha: Fraction | None = None
    """The share of misses that training aimed at; None where the folder of a bundle is silent."""
    train: Traces | None = None
    """The questions that it was trained on, where they are at hand."""
    method: str = ""
    """What trained it, where that is at hand; a bundle knows the family of policies alone."""

    def __repr__(self) -> str:
        """Name the method, and say what is promised."""
        promised = self.certificate or "nothing is promised yet"
        return f"<{self.method or self.bundle.kind}: {promised}>"

    @property
    def certificate(self) -> Certificate | None:
        """What is promised; None before calibration. Printed, it is one sentence."""
        return self.bundle.certificate

    @property
    def value(self) -> "Value | None":
        """What it costs beside the reference, on the questions that calibrated it."""
        return self.bundle.value

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
        prove = self._part(held_out, asked)
        train = self._part(self.train, asked) if self.train else prove
        if self.train is None and not isinstance(asked, Coverage):
            raise InputError(
                "this promise lays its settings out on the training questions, which a bundle from "
                "a folder does not hold; use `farthing calibrate`, or fit again"
            )
        budget = _per_question(budget_usd, largest_usd)
        serving = pipeline.Serving(budget, held_out.dataset.system)
        bundle, certificate, outlook = pipeline.tried(self.bundle, asked, train, prove, serving)
        if not certificate.promises:
            raise InputError(f"{certificate.sentence()} {outlook}".rstrip())
        return replace(self, bundle=bundle)

    def evaluate(self, test: Traces, *, seed: int = 0) -> "Evaluation":
        """Measure it on questions that neither trained nor calibrated it.

        Raises:
            InputError: the questions have other roles or rounds than the policy's.
        """
        graded = evaluate_bundle.graded_for(self.bundle, test.arrays)
        part = Part(graded, pipeline.arranged("these traces", self.bundle, graded))
        return Evaluation(evaluate_bundle.measure(self.bundle, part, seed=seed))

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

    def _part(self, traces: Traces, asked: Promise) -> Part:
        graded = read_for(asked, traces.arrays, self.bundle.origin.grade)
        return Part(graded, pipeline.arranged("these traces", self.bundle, graded))


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

    @property
    def value(self) -> "Value":
        """What it costs and gets right beside the reference; printed, it is a paragraph."""
        return self.found.value

    def __str__(self) -> str:
        """Return the table, what came of the promise, and what to doubt."""
        from farthing.reports.pipeline import measured  # noqa: PLC0415 - only where it is drawn

        return "\n".join([drawn(measured(self.found)), *(f"note: {n}" for n in self.found.notes)])


def fit(
    method: str,
    train: Traces,
    alpha: Level = Fraction(1, 10),
    *,
    seed: int = 0,
    features: Sequence[str] = (),
    grade: str = RIGHT,
) -> Policy:
    """Train a method on recorded questions.

    Args:
        method: its name, such as `lookahead`; `farthing methods` lists them.
        train: the questions to learn from.
        alpha: the share of misses to aim at; a float counts as the decimal that it prints.
        seed: the same seed gives the same policy.
        features: recorded numbers that the policy is to see beside the built-in features.
        grade: what answers are judged by: `right`, or `same as MODEL`, which takes no accepted
            answers.

    Raises:
        UnknownNameError: there is no such method; the message lists those that there are.
        InputError: it cannot run on these questions.
        MissingExtraError: training needs a package that is not installed.
    """
    level = exact_level(alpha)
    answers = graded(train.arrays, grade)
    dataset = replace(train.dataset, traces=answers, features=tuple(features))
    candidate, learner = the_only(dataset, method)
    questions = dataset.arranged(candidate.method.space)
    fitted = fit_learner(learner, questions, level, seed, Silent())
    bundle = pipeline.bundle_of(candidate, fitted, questions, dataset, dataset.traces)
    return Policy(bundle, level, train, candidate.name)


def load(folder: str | Path) -> Policy:
    """Read a bundle.

    Raises:
        BundleError: it is no bundle, or was changed; the message names the file.
    """
    bundle = bundles.load(folder)
    alpha = getattr(bundle.certificate.promise, "alpha", None) if bundle.certificate else None
    return Policy(bundle, alpha)


def _per_question(
    budget_usd: float | None, largest_usd: Mapping[str, float] | None
) -> PerQuestion | None:
    if budget_usd is None:
        if largest_usd:
            raise InputError("largest_usd goes with budget_usd; give that too, or leave it out")
        return None
    largest = {role: nano_from_usd(usd) for role, usd in (largest_usd or {}).items()}
    return PerQuestion(nano_from_usd(budget_usd), largest or None)

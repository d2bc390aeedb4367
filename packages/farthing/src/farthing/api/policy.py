"""A policy: trained, calibrated, evaluated, saved, read again, and asked."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from msgspec import structs

from farthing import plugins
from farthing.api.arguments import (
    models_of,
    names_of,
    nano_of,
    path_of,
    registered,
    shown,
    text_of,
    whole_of,
)
from farthing.api.prediction import Prediction, predictions
from farthing.api.questions import Traces, at_its_look, traces_of
from farthing.api.rendering import drawn
from farthing.api.wording import in_python, python_words, worded
from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.methods.base import Learner, Method, Silent
from farthing.process.budget import PerQuestion
from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.levels import Level, level_of
from farthing.recommendation import certify, pipeline, splits
from farthing.recommendation.auto import AUTO, choose_method
from farthing.recommendation.candidates import single_candidate
from farthing.recommendation.evaluate import evaluate_in_memory, graded_for
from farthing.recommendation.fitting import fit as fit_learner
from farthing.recommendation.played import (
    ProvingQuestions,
    Q,
    ReportingQuestions,
    TrainingQuestions,
)
from farthing.recommendation.promised_grade import read_for
from farthing.traces.arrays import RIGHT
from farthing.traces.costs import check_costs
from farthing.traces.eligibility import alike, asked_all
from farthing.traces.grades.below_chance import check_gold
from farthing.traces.grades.overlay import graded

if TYPE_CHECKING:
    from farthing.models.base import Model
    from farthing.process.value import PolicyValue
    from farthing.recommendation.evaluate import BundleEvaluation
    from farthing.runtime.answer import Answer


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
    def value(self) -> "PolicyValue | None":
        """What it costs beside the reference, on the questions that calibrated it."""
        return self.bundle.value

    @worded
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
            InputError: the questions trained the policy, or the promise cannot be calibrated, or
                costs are not known.
        """
        now, inside = self.bundle, self.bundle.trained
        if inside is not None:  # a reference answers in its place
            met = {"questions": now.questions, "looks": now.looks, "certificate": now.certificate}
            trained = replace(self, bundle=structs.replace(inside, **met))
            return trained.calibrate(
                held_out, promise, budget_usd=budget_usd, largest_usd=largest_usd
            )
        held_out = traces_of(held_out, "the held-out questions")
        look = at_its_look(held_out, self._asked(promise))
        asked = look.promise
        if look.note:
            warnings.warn(look.note, stacklevel=3)
        prove = self._part(ProvingQuestions, held_out, "the held-out questions", asked)
        if self.train is None and not asked.stands:
            raise InputError(
                "this promise lays its settings out on the training questions, which a bundle from "
                "a folder does not hold; use `farthing calibrate`, or fit again"
            )
        known = self.train or held_out  # coverage lays nothing out
        train = self._part(TrainingQuestions, known, "the training questions", asked)
        budget = _per_question(budget_usd, largest_usd)
        dataset = held_out.dataset
        made_up = dataset.generator is not None
        serving = certify.Serving(
            budget, dataset.system, prove.asked_of, made_up=made_up, conditions=look.conditions
        )
        proof = certify.prove_bundle(certify.Contender(self.bundle, asked, train, prove, serving))
        if not proof.certificate.promises:
            raise InputError(f"{proof.certificate.sentence()} {proof.outlook}".rstrip())
        bundle = certify.remembering(proof.bundle, self.bundle, prove.played)
        if bundle.looks > 1:
            warnings.warn(wording.look(bundle.looks), stacklevel=3)
        return replace(self, bundle=bundle)

    @worded
    def evaluate(self, test: Traces, *, seed: int = 0) -> "PolicyEvaluation":
        """Measure it on questions that neither trained nor calibrated it.

        Raises:
            InputError: the questions have other roles or rounds than the policy's, or costs are
                not known.
        """
        recorded = traces_of(test, "the test questions").arrays
        some, _ = asked_all(
            recorded, splits.models_of(self.bundle, None, recorded), test.dataset.missing
        )
        some = some.take(alike(some, np.arange(len(some))))
        check_costs(some)
        graded = graded_for(self.bundle, some)
        check_gold(graded)
        part = ReportingQuestions(graded, splits.as_played("these traces", self.bundle, graded))
        seed = whole_of(seed, "seed", 0)
        return PolicyEvaluation(evaluate_in_memory(self.bundle, part, seed=seed))

    @worded
    def predict(self, questions: Traces, *, seed: int = 0) -> list[Prediction]:
        """Say what it answers on recorded questions, one after another; no grades are needed.

        Args:
            questions: those; where a call that it may make was not recorded, nothing is known.
            seed: of the draws of a policy that has no threshold and acts by lot.

        Raises:
            InputError: the questions have other roles or rounds than the policy's.

        >>> import farthing as ft
        >>> calls = [("small", "4", 1e-5), ("large", "5", 1e-3)]
        >>> traces = ft.from_records([
        ...     {"prompt": f"{n}?", "llm": llm, "response": said, "passed": said == "5", "usd": usd}
        ...     for n in range(20) for llm, said, usd in calls
        ... ])
        >>> train, others = traces.split(0.5, 0.5)
        >>> found = ft.fit("always-large", train).predict(others)
        >>> len(found), found[0].id == others[0].id
        (10, True)
        """
        known = traces_of(questions, "the questions")
        return predictions(self.bundle, known, whole_of(seed, "seed", 0))

    @worded
    def save(self, folder: str | Path) -> None:
        """Write a bundle, which `farthing.load`, `farthing ask` and `farthing evaluate` read.

        The policy's own bundle is written anew; another one that promises something is not lost.

        Raises:
            BundleError: the folder holds another proved bundle or something else, or cannot be
                written.
        """
        path = path_of(folder, "the bundle")
        if not bundles.holds(path, self.bundle):
            bundles.check_nothing_is_lost(path)
        bundles.write(path, self.bundle)

    async def answer(
        self,
        question: str,
        models: "Mapping[str, Model]",
        *,
        task: str = "text",
        system: str = "",
        budget_usd: float | None = None,
    ) -> "Answer":
        """Answer one question with live models.

        Args:
            question: what is asked.
            models: role to the model that fills it: `base` and `guide`, or the models of a pool.
            task: its name says when two answers are the same.
            system: the system prompt of a log's requests, where the policy learned from one; the
                models are then asked with its temperature and limit as well.
            budget_usd: the most that may be paid for it; None: no limit.

        Raises:
            InputError: the policy was trained for other roles or models, or its traces were made
                with another system prompt.
        """
        from farthing.runtime.runner import PolicyRunner  # noqa: PLC0415 - only where it serves
        from farthing.tasks.base import Question  # noqa: PLC0415

        text = text_of(question, "the question", "What is 4 + 3?")
        nano = None if budget_usd is None else nano_of(budget_usd, "budget_usd")
        if not isinstance(system, str):
            raise InputError(
                f"system is {shown(system)}; give the text of the log's system prompt, or leave it "
                "out"
            )
        known = plugins.load("tasks", text_of(task, "the task", "text"))
        with python_words():
            serving = PolicyRunner.with_models(self.bundle, models_of(models), known, system)
            return await serving.answer(Question(text[:64], text), budget_nano=nano)

    def _asked(self, promise: Promise | None) -> Promise:
        if promise is None:
            if self.alpha is None:
                raise InputError("say what is to be proved, such as farthing.Coverage(0.9)")
            return Coverage(1 - self.alpha)
        if not isinstance(promise, Promise):
            raise InputError(
                f"{shown(promise)} is no promise; give one such as farthing.Coverage(0.9)"
            )
        return promise

    def _part(self, kind: type[Q], traces: Traces, what: str, asked: Promise) -> Q:
        recorded = traces_of(traces, what).arrays
        models = splits.models_of(self.bundle, asked, recorded)
        some, asked_of = asked_all(recorded, models, traces.dataset.missing)
        check_costs(some)
        against = models[-1] if asked.held_to_reference else None
        check_gold(some, needed=asked.needs_gold, reference=against)
        graded = read_for(asked, some, self.bundle.origin.grade)
        played = splits.as_played("these traces", self.bundle, graded)
        return kind(graded, played, asked_of=asked_of)


@dataclass(frozen=True)
class PolicyEvaluation:
    """What a policy came to on test questions; printed, it is a table."""

    found: "BundleEvaluation"

    @property
    def metrics(self) -> Mapping[str, float]:
        """Name to value: `cost_usd`, `coverage`, `accuracy` and others."""
        return self.found.metrics

    @property
    def intervals(self) -> Mapping[str, tuple[float, float]]:
        """Name to its exact 95 % interval, where there is one."""
        return self.found.intervals

    @property
    def value(self) -> "PolicyValue":
        """What it costs and gets right beside the reference; printed, it is a paragraph."""
        return self.found.value

    def __str__(self) -> str:
        """Return the table, what came of the promise, and what to doubt."""
        from farthing.reports.bundle import measured  # noqa: PLC0415 - only where it is drawn

        notes = (f"note: {in_python(note)}" for note in self.found.notes)
        return "\n".join([drawn(measured(self.found)), *notes])


@worded
def fit(
    method: str | Method | Learner,
    train: Traces,
    alpha: Level = Fraction(1, 10),
    *,
    seed: int = 0,
    features: Sequence[str] = (),
    grade: str = RIGHT,
) -> Policy:
    """Train a method on recorded questions.

    Args:
        method: its name, such as `lookahead`; `farthing methods` lists them. `auto` tries those
            that can win and takes the one that is likely to cost least, as `recommend` does; the
            policy's `method` says which. Or a learner of your own, an object with
            `fit(train, alpha, seed, progress)`, or the card (`Method`) of one.
        train: the questions to learn from.
        alpha: the share of misses to aim at; a float counts as the decimal that it prints.
        seed: the same seed gives the same policy.
        features: recorded numbers that the policy is to see beside the built-in features.
        grade: what answers are judged by: `right`, or `same as MODEL`, which takes no accepted
            answers.

    Raises:
        UnknownNameError: there is no such method; the message lists those that there are.
        InputError: it cannot run on these questions, or costs are not known.
        TooFewTracesError: there are too few questions to choose a method on.
        MissingExtraError: training needs a package that is not installed.
    """
    level, seed = level_of(alpha, "alpha"), whole_of(seed, "seed", 0)
    names = names_of(features, "features")
    known = traces_of(train, "the training questions")
    check_costs(known.arrays)
    answers = graded(known.arrays, text_of(grade, "the grade", RIGHT))
    check_gold(answers)
    dataset = replace(known.dataset, traces=answers, features=names).in_common(proving=False)
    name = method if isinstance(method, str) else registered(method, dataset)
    if text_of(name, "the method", "lookahead") == AUTO:
        name = choose_method(dataset, level, seed=seed)
    candidate, learner = single_candidate(dataset, name)
    questions = dataset.arranged(candidate.method.space)
    fitted = fit_learner(learner, questions, level, seed, Silent())
    if not isinstance(method, str | Method):
        plugins.add("methods", name, replace(candidate.method, policy=type(fitted.policy)))
    bundle = pipeline.bundle_of(candidate, fitted, questions, dataset, dataset.traces)
    return Policy(bundle, level, train, candidate.name)


@worded
def load(folder: str | Path) -> Policy:
    """Read a bundle.

    Raises:
        BundleError: it is no bundle, or was changed; the message names the file.
    """
    bundle = bundles.load(path_of(folder, "the bundle"))
    alpha = getattr(bundle.certificate.promise, "alpha", None) if bundle.certificate else None
    return Policy(bundle, alpha)


def _per_question(
    budget_usd: float | None, largest_usd: Mapping[str, float] | None
) -> PerQuestion | None:
    if budget_usd is None:
        if largest_usd:
            raise InputError("largest_usd goes with budget_usd; give that too, or leave it out")
        return None
    given = {} if largest_usd is None else largest_usd
    if not isinstance(given, Mapping):
        raise InputError(f"largest_usd is {shown(given)}; give a dictionary of role to US dollars")
    largest = {role: nano_of(usd, f"largest_usd of {role}") for role, usd in given.items()}
    return PerQuestion(nano_of(budget_usd, "budget_usd"), largest or None)

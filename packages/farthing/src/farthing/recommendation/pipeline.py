"""One policy: train it and calibrate it, each on its own questions; `evaluate` evaluates it.

The three steps work in turn on one file. Under the same seed and sizes they divide it alike, so
that no question is used twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from msgspec import structs

from farthing import __version__
from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.methods.base import Dataset, Fitted, Progress, Silent
from farthing.methods.cards import name_of
from farthing.process.value import PolicyValue
from farthing.promises import wording
from farthing.promises.base import Promise
from farthing.promises.certificate import AskedOf, Certificate
from farthing.promises.kinds import none
from farthing.recommendation.base import Candidate
from farthing.recommendation.candidates import single_candidate
from farthing.recommendation.certify import (
    AS_RECORDED,
    Contender,
    Serving,
    prove_or_fall_back,
    remembering,
    saveable,
    system_behind,
)
from farthing.recommendation.fitting import fit
from farthing.recommendation.partial_grades import LabelledTraces, SampledGrades
from farthing.recommendation.played import ProvingQuestions, TrainingQuestions
from farthing.recommendation.promised_grade import read_for
from farthing.recommendation.prove import counted
from farthing.recommendation.savings import paid_most
from farthing.recommendation.splits import (
    DEFAULT,
    Split,
    as_played,
    models_of,
    sizes_of,
    split_bundle_questions,
)
from farthing.recommendation.warnings import by_what_was_recorded, doubts, other_system
from farthing.traces.arrays import TraceArrays
from farthing.traces.copies import n_distinct, near_note, note, one_of_each
from farthing.traces.costs import check_costs
from farthing.traces.eligibility import Missing, asked_all, only
from farthing.traces.fingerprint import fingerprint, marks_of
from farthing.traces.grades.below_chance import check_gold
from farthing.traces.grades.overlay import reference_of
from farthing.traces.splits import Parts
from farthing.traces.system import origin_of


@dataclass(frozen=True)
class Trained:
    """What `train` did."""

    candidate: Candidate
    fitted: Fitted
    sizes: Mapping[str, int]
    """Questions in each part."""
    notes: tuple[str, ...] = ()
    """Which questions took no part."""


@dataclass(frozen=True)
class Calibrated:
    """What `calibrate` did."""

    certificate: Certificate
    sizes: Mapping[str, int]
    notes: tuple[str, ...]
    """What to doubt."""
    value: PolicyValue | None = None
    """What the bundle costs and gets right on the calibration questions; None where unknown."""
    left: str = ""
    """Why the bundle was left as it was; empty where it was written."""
    outlook: str = ""
    """Where nothing was proved: what would probably be."""


def train(
    dataset: Dataset,
    name: str,
    alpha: Fraction,
    folder: str | Path,
    *,
    split: Split = DEFAULT,
    progress: Progress | None = None,
) -> Trained:
    """Train one policy on the training part and save it as a bundle that promises nothing yet.

    After Ctrl-C the bundle holds what there is, and `fitted.stopped_early` says so. The same seed
    gives the same bundle, byte for byte.

    Args:
        dataset: the questions; a pool of models is played as a cascade.
        name: a candidate's, such as `ccpo` or `fixed-2`.
        alpha: the share of misses to train for.
        folder: where the bundle goes.
        split: how the questions are divided; its seed is also that of the training.
        progress: is told how far the training is.
    """
    dataset = dataset.in_common(proving=False)
    check_costs(dataset.traces)
    check_gold(dataset.traces)
    candidate, learner = single_candidate(dataset, name)
    arrays = dataset.arranged(candidate.method.space)
    parts = split_bundle_questions(arrays, split)
    questions = arrays.take(parts.train)
    fitted = fit(learner, questions, alpha, split.seed, progress or Silent())
    recorded = dataset.traces.take(parts.train)
    bundles.write(folder, bundle_of(candidate, fitted, questions, dataset, recorded))
    return Trained(candidate, fitted, sizes_of(parts), _left_out(dataset.asked_of))


def bundle_of(
    candidate: Candidate,
    fitted: Fitted,
    questions: TraceArrays,
    dataset: Dataset | None = None,
    recorded: TraceArrays | None = None,
) -> Bundle:
    """Return a trained policy as a bundle that promises nothing yet.

    Args:
        candidate: the method.
        fitted: what its training left behind.
        questions: those that it was trained on.
        dataset: what they are of; None: nothing more is known of them.
        recorded: the same questions as they were recorded, to choose a reference on; None: they
            are.
    """
    system = system_behind(
        dataset.system if dataset else None, questions if recorded is None else recorded
    )
    origin = origin_of(questions, fingerprint(questions), system)
    if dataset is not None:
        named = dict.fromkeys(model for model in dataset.traces.models if model)
        log = questions if recorded is None else recorded
        guess = paid_most(log) if log.independent.all() else None  # None: nobody was asked alone
        reference = dataset.reference or guess
        origin = structs.replace(origin, named=tuple(named), reference=reference)
    kappa = None if candidate.calibration == "none" else fitted.kappa
    return Bundle(
        policy=saveable(fitted.policy, candidate.name),
        kind=name_of(fitted.policy),
        origin=origin,
        kappa=kappa,
        empty=candidate.empty,
        certificate=None if kappa is None else none.certify(kappa, fingerprint=origin.fingerprint),
        features=None,
        farthing_version=__version__,
        questions={"train": marks_of(questions)},
    )


def calibrate(
    folder: str | Path,
    traces: TraceArrays,
    asked: Promise,
    *,
    split: Split = DEFAULT,
    serving: Serving = AS_RECORDED,
    late: LabelledTraces | None = None,
) -> Calibrated:
    """Set a bundle's threshold on the calibration part so that it keeps a promise, and save it.

    Any policy's scores can be thresholded; one that acted by lot acts through its threshold then.
    Where a promise other than coverage is not proved, no threshold could carry it, and the
    certificate says so. If it is about a reference that was recorded alone, the bundle then asks
    that one for every question, and keeps the trained policy inside, with which the next
    calibration begins; else it is left as it was.

    Args:
        folder: the bundle.
        traces: the questions, of the kind that it was trained on.
        asked: the promise.
        split: as in `train`.
        serving: what it is to hold for.
        late: the grades beside the traces, which these traces have already; None: there are none.
    """
    check_costs(traces)
    ready = ready_for(folder, asked, traces, split, late, serving.missing)
    bundle, prove = ready.bundle, ready.prove
    serving = replace(serving, asked_of=ready.asked_of)
    proof = prove_or_fall_back(Contender(bundle, asked, ready.train, prove, serving))
    prove = counted(asked, prove)
    n = n_distinct(prove.played.content)
    copies = note(prove.requests or len(prove.played), n), near_note(ready.played)
    doubtful = (*filter(None, copies), *doubts(bundle, traces, ready.played, ready.parts))
    kept = remembering(proof.bundle, bundles.load(folder), ready.prove.played)
    again = [wording.look(kept.looks)] if kept.looks > 1 else []
    if serving.missing == "chance" and late is None:
        some = only(traces, models_of(bundle, asked, traces))
        again += by_what_was_recorded(some, np.flatnonzero(some.complete))
    notes = (*doubtful, *other_system(bundle, kept.origin.system), *again)
    done = Calibrated(
        kept.certificate or proof.certificate,
        sizes_of(ready.parts),
        notes,
        value=None if proof.left else kept.value,
        left=proof.left,
        outlook=proof.outlook,
    )
    if not proof.left:
        bundles.write(folder, structs.replace(kept, trained=bundle) if proof.falls_back else kept)
    return done


@dataclass(frozen=True)
class Ready:
    """A bundle and the questions that are to prove something of it."""

    bundle: Bundle
    played: TraceArrays
    """All questions, as the bundle plays them."""
    parts: Parts
    train: TrainingQuestions
    prove: ProvingQuestions
    asked_of: AskedOf | None = None
    """Which of the recorded questions these are, where some lack calls."""


def ready_for(
    folder: str | Path,
    asked: Promise,
    traces: TraceArrays,
    split: Split,
    late: LabelledTraces | None,
    missing: Missing | None = None,
) -> Ready:
    """Read a bundle as it was trained, and the questions by the grade that a promise is about."""
    by_lot = late is not None and late.draw is not None
    bundle = bundles.load(folder)
    bundle = bundle.trained or bundle
    models, asked_of = models_of(bundle, asked, traces), None
    against = models[-1] if asked.held_to_reference else None
    check_gold(traces, needed=asked.needs_gold, reference=against)
    if late is None:  # which is of all these models' answers
        traces, asked_of = asked_all(traces, models, missing)
    traces = read_for(asked, traces, bundle.origin.grade, by_lot=by_lot)
    if late is not None and asked.graded_by == "judge":
        traces = late.with_same(traces, reference_of(traces.grade) or "")
    played = as_played(folder, bundle, traces)
    parts = split_bundle_questions(played, split)
    train = TrainingQuestions(traces.take(parts.train), played.take(parts.train))
    prove = ProvingQuestions(traces.take(parts.calibrate), played.take(parts.calibrate))
    if late is not None and asked.per != "request":  # whoever grades is asked each question once
        once = parts.calibrate[one_of_each(prove.recorded.content)]
        prove, parts = prove.distinct(), replace(parts, calibrate=once)
    if late is not None and asked.graded_by == "judge":
        found = late.checks(reference_of(traces.grade) or "", parts.calibrate)
        prove = replace(prove, by=found)
    elif late is not None and late.draw is not None and asked.graded_by == "lot":
        judged = late.judged()
        by = (part.take(parts.calibrate) for part in (judged, as_played(folder, bundle, judged)))
        prove = replace(prove, by=SampledGrades(late.draw, *by))
    return Ready(bundle, played, parts, train, prove, asked_of)


def _left_out(asked_of: AskedOf | None) -> tuple[str, ...]:
    if asked_of is None or asked_of.questions == asked_of.recorded:
        return ()
    lacking = f"{asked_of.recorded - asked_of.questions:,} of the {asked_of.recorded:,} questions"
    return (f"{lacking} lack a call of {' or '.join(asked_of.models)} and are left out",)

"""One policy: train it and calibrate it, each on its own questions; `measuring` evaluates it.

The three steps work in turn on one file. Under the same seed and sizes they divide it alike, so
that no question is used twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from msgspec import structs

from farthing import __version__
from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.calibration import guarantees
from farthing.calibration.base import Certificate
from farthing.errors import CalibrationError, InputError
from farthing.experiments.acting import act, whole_of
from farthing.experiments.base import Candidate
from farthing.experiments.candidates import the_only
from farthing.experiments.doubts import AS_BEFORE, doubts, other_system
from farthing.experiments.evaluate import stream
from farthing.experiments.fallback import NoFallback, fallback
from farthing.experiments.outlook import outlook
from farthing.experiments.partly_graded import ByLot, Graded
from farthing.experiments.promises import Agreement, Coverage, Parity, Promise, Selective, Shift
from farthing.experiments.proofs import Part, promise, read_for
from farthing.experiments.run import fit
from farthing.experiments.value import Singles, about_given, about_sets, most_accurate, value_of
from farthing.methods.base import Dataset, Fitted, Progress, Saveable, Silent
from farthing.methods.cards import name_of
from farthing.money import dollars
from farthing.process.base import Policy
from farthing.process.budget import PerQuestion
from farthing.process.value import Value
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.fingerprint import fingerprint
from farthing.traces.grades import reference_of
from farthing.traces.origin import as_asked, origin_of
from farthing.traces.question_hashes import Marks, marks
from farthing.traces.splits import Divisible, Parts, fixed_parts
from farthing.traces.system import System

Sizes = Mapping[str, int | None]
"""Questions to `train`, `calibrate` and `test`; what is not given is its share."""


@dataclass(frozen=True)
class Split:
    """How questions are divided: the same at every step, so that none is used twice."""

    seed: int = 0
    """Of the division, of the training, and of whatever a step draws."""
    sizes: Sizes = field(default_factory=dict)


DEFAULT = Split()

NO_MARKS: Marks = frozenset()


@dataclass(frozen=True)
class Serving:
    """How a policy is to be served, which is what its promise is about."""

    budget: PerQuestion | None = None
    """What a question may cost; None: no limit."""
    system: System | None = None
    """What the calibration questions were made with; None where nobody knows."""


AS_RECORDED = Serving()


@dataclass(frozen=True)
class Trained:
    """What `train` did."""

    candidate: Candidate
    fitted: Fitted
    sizes: Mapping[str, int]
    """Questions in each part."""


@dataclass(frozen=True)
class Calibrated:
    """What `calibrate` did."""

    certificate: Certificate
    sizes: Mapping[str, int]
    notes: tuple[str, ...]
    """What to doubt."""
    value: Value | None = None
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

    Raises:
        UnknownNameError: no policy has that name.
        InputError: the policy cannot run on these traces, or cannot be saved.
        TooFewTracesError: there are fewer questions than the sizes ask for.
        BundleError: the folder holds something else.
    """
    candidate, learner = the_only(dataset, name)
    arrays = dataset.arranged(candidate.method.space)
    parts = divided(arrays, split)
    questions = arrays.take(parts.train)
    fitted = fit(learner, questions, alpha, split.seed, progress or Silent())
    recorded = dataset.traces.take(parts.train)
    bundles.write(folder, bundle_of(candidate, fitted, questions, dataset, recorded))
    return Trained(candidate, fitted, sizes_of(parts))


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

    Raises:
        InputError: the policy cannot be saved.
    """
    origin = origin_of(questions, fingerprint(questions), dataset.system if dataset else None)
    if dataset is not None:
        named = dict.fromkeys(model for model in dataset.traces.models if model)
        reference = dataset.reference or most_accurate(questions if recorded is None else recorded)
        origin = structs.replace(origin, named=tuple(named), reference=reference)
    kappa = None if candidate.calibration == "none" else fitted.kappa
    return Bundle(
        policy=_saveable(fitted.policy, candidate.name),
        kind=name_of(fitted.policy),
        origin=origin,
        kappa=kappa,
        empty=candidate.empty,
        certificate=_no_promise(kappa, origin.fingerprint),
        features=None,
        farthing_version=__version__,
        questions={"train": marks(questions)},
    )


def calibrate(
    folder: str | Path,
    traces: TraceArrays,
    asked: Promise,
    *,
    split: Split = DEFAULT,
    serving: Serving = AS_RECORDED,
    late: Graded | None = None,
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

    Raises:
        InputError: the traces have other roles or rounds than the bundle's, lack groups or bounds
            of costs, or the promise cannot be calibrated.
        TooFewTracesError: there are fewer questions than the sizes ask for.
        BundleError: the folder is no bundle.
    """
    ready = ready_for(folder, asked, traces, split, late)
    bundle, prove = ready.bundle, ready.prove
    kept, certificate, what_would = tried(bundle, asked, ready.train, prove, serving)
    doubtful = doubts(bundle, ready.played, ready.parts)
    notes = (*doubtful, *other_system(bundle, serving.system))
    done = Calibrated(certificate, sizes_of(ready.parts), notes, kept.value, outlook=what_would)
    if not (isinstance(asked, Coverage) or certificate.promises):
        instead = fallback(kept, certificate, prove)
        if isinstance(instead, NoFallback):
            return replace(done, value=None, left=instead.why)
        alone = Part(prove.recorded, prove.recorded)  # nobody is asked in turn
        kept = structs.replace(instead, trained=bundle, value=value_on(instead, alone))
        done = replace(done, value=kept.value)
    bundles.write(folder, kept)
    return done


@dataclass(frozen=True)
class Ready:
    """A bundle and the questions that are to prove something of it."""

    bundle: Bundle
    played: TraceArrays
    """All questions, as the bundle plays them."""
    parts: Parts
    train: Part
    prove: Part


def ready_for(
    folder: str | Path, asked: Promise, traces: TraceArrays, split: Split, late: Graded | None
) -> Ready:
    """Read a bundle as it was trained, and the questions by the grade that a promise is about."""
    by_lot = late is not None and late.draw is not None
    bundle = bundles.load(folder)
    bundle = bundle.trained or bundle
    traces = read_for(asked, traces, bundle.origin.grade, by_lot=by_lot)
    if late is not None and isinstance(asked, Agreement):
        traces = late.with_same(traces, reference_of(traces.grade) or "")
    played = arranged(folder, bundle, traces)
    parts = divided(played, split)
    train, prove = (
        Part(traces.take(rows), played.take(rows)) for rows in (parts.train, parts.calibrate)
    )
    if late is not None and isinstance(asked, Agreement):
        found = late.checks(reference_of(traces.grade) or "", parts.calibrate)
        prove = replace(prove, by=found)
    elif late is not None and late.draw is not None and isinstance(asked, Parity | Selective):
        judged = late.judged()
        by = (part.take(parts.calibrate) for part in (judged, arranged(folder, bundle, judged)))
        prove = replace(prove, by=ByLot(late.draw, *by))
    return Ready(bundle, played, parts, train, prove)


def promised(
    bundle: Bundle, asked: Promise, train: Part, prove: Part, serving: Serving = AS_RECORDED
) -> tuple[Bundle, Certificate]:
    """Return a bundle with the threshold that keeps a promise, and its certificate.

    `tried` says besides what would probably be proved where nothing was.
    """
    kept, certificate, _ = tried(bundle, asked, train, prove, serving)
    return kept, certificate


def tried(
    bundle: Bundle,
    asked: Promise,
    train: Part,
    prove: Part,
    serving: Serving = AS_RECORDED,
    *,
    row: FloatArray | None = None,
) -> tuple[Bundle, Certificate, str]:
    """Return a bundle with the threshold that keeps a promise, its certificate, and the outlook.

    Args:
        bundle: a trained policy.
        asked: the promise.
        train: questions that trained it, to lay operating points out on.
        prove: questions that it has not seen.
        serving: what it is to hold for.
        row: the thresholds to prove, where other questions chose them; see `proofs.promise`.

    Raises:
        InputError: some of the questions trained the policy, the target has other roles or rounds
            than the bundle's, or the promise cannot be calibrated.
    """
    _check_held_out(bundle, prove.played)
    if isinstance(asked, Shift):
        asked = replace(asked, target=arranged("the target mix", bundle, asked.target))
    try:
        found = promise(asked, bundle, train, prove, serving.budget, row)
    except CalibrationError as problem:
        budget = serving.budget
        under = f" under a budget of {dollars(budget.nano)} a question" if budget else ""
        raise InputError(f"cannot calibrate{under}: {problem}") from None
    origin = structs.replace(bundle.origin, system=serving.system)
    if serving.budget is not None:
        largest = serving.budget.largest_nano
        origin = structs.replace(origin, largest_nano=None if largest is None else dict(largest))
    kept = structs.replace(
        bundle,
        policy=_saveable(found.policy, bundle.kind),
        kind=name_of(found.policy),
        origin=origin,
        kappa=found.certificate.kappa,
        certificate=found.certificate,
        empty=found.empty,
        questions={**bundle.questions, "calibrate": marks(prove.played)},
    )
    kept = structs.replace(kept, value=value_on(kept, prove))
    return (
        kept,
        found.certificate,
        outlook(found.certificate, found.tested.evidence if found.tested else None),
    )


def value_on(bundle: Bundle, prove: Part) -> Value | None:
    """Return what a bundle is worth on these questions; None where some were not graded."""
    if prove.recorded.ungraded.any():
        return None
    done = whole_of(bundle, prove, act(bundle, prove.played, stream(bundle.kind, 0)))
    singles, sets = Singles.of(prove.recorded), about_sets(bundle.certificate)
    given = about_given(bundle.certificate)
    return value_of(done, singles, bundle.reference, "calibrate", sets=sets, given=given)


def divided(arrays: Divisible, split: Split) -> Parts:
    """Return the parts that every step works on."""
    return fixed_parts(arrays, np.random.default_rng(split.seed), **split.sizes)


def sizes_of(parts: Parts) -> dict[str, int]:
    """Return how many questions each part has."""
    return {"train": len(parts.train), "calibrate": len(parts.calibrate), "test": len(parts.test)}


def _no_promise(kappa: float | None, mark: str) -> Certificate | None:
    return None if kappa is None else guarantees.none.certify(kappa, fingerprint=mark)


def _saveable(policy: Policy, kind: str) -> Saveable:
    if not isinstance(policy, Saveable):
        raise InputError(f"the policy '{kind}' cannot be saved; compare it instead")
    return policy


def opened(
    folder: str | Path, traces: TraceArrays, split: Split
) -> tuple[Bundle, TraceArrays, Parts]:
    """Load a bundle and lay the traces out for it."""
    bundle = bundles.load(folder)
    arrays = arranged(folder, bundle, traces)
    return bundle, arrays, divided(arrays, split)


def arranged(folder: str | Path, bundle: Bundle, traces: TraceArrays) -> TraceArrays:
    """Return traces as the bundle plays them; raise InputError where it cannot."""
    arrays = as_asked(traces, bundle.origin)
    check_kind(folder, bundle, arrays)
    return arrays


def check_kind(folder: str | Path, bundle: Bundle, arrays: TraceArrays) -> None:
    """Refuse traces, as they are played, of other roles or rounds than a bundle's."""
    theirs, ours = bundle.origin, (arrays.roles, arrays.horizon)
    if (theirs.roles, theirs.horizon) != ours:
        raise InputError(
            f"{folder}: the policy was trained for {_kind(theirs.roles, theirs.horizon)}, these "
            f"traces have {_kind(*ours)}; use traces of the same kind, or train on these"
        )


def _check_held_out(bundle: Bundle, part: TraceArrays) -> None:
    for which, did in (("train", "trained the policy"), ("choose", "chose the method")):
        if met := len(marks(part) & bundle.questions.get(which, NO_MARKS)):
            raise InputError(
                f"{met:,} of the {len(part):,} calibration questions {did}, "
                f"so nothing could be promised; {AS_BEFORE}"
            )


def _kind(roles: tuple[str, ...], horizon: int) -> str:
    return f"{horizon} rounds of {' and '.join(roles)}"

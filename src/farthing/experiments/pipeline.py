"""One policy: train it and calibrate it, each on its own questions; `evaluate_bundle` evaluates it.

The three steps work in turn on one file. Under the same seed and sizes they divide it alike, so
that no question is used twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from msgspec import structs

from farthing import __version__
from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.calibration import guarantees
from farthing.calibration.base import Certificate
from farthing.experiments.base import Candidate
from farthing.experiments.candidates import the_only
from farthing.experiments.division import DEFAULT, Split, arranged, divided, sizes_of
from farthing.experiments.doubts import doubts, other_system
from farthing.experiments.fallback import NoFallback, fallback
from farthing.experiments.graded_for import read_for
from farthing.experiments.partly_graded import ByLot, Graded
from farthing.experiments.plays import Part
from farthing.experiments.promises import Agreement, Coverage, Parity, Promise, Selective
from farthing.experiments.proving import AS_RECORDED, Serving, saveable, tried, value_on
from farthing.experiments.run import fit
from farthing.experiments.value import most_accurate
from farthing.methods.base import Dataset, Fitted, Progress, Silent
from farthing.methods.cards import name_of
from farthing.process.value import Value
from farthing.traces.arrays import TraceArrays
from farthing.traces.fingerprint import fingerprint
from farthing.traces.grades import reference_of
from farthing.traces.origin import origin_of
from farthing.traces.question_hashes import marks
from farthing.traces.splits import Parts


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
        policy=saveable(fitted.policy, candidate.name),
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


def _no_promise(kappa: float | None, mark: str) -> Certificate | None:
    return None if kappa is None else guarantees.none.certify(kappa, fingerprint=mark)

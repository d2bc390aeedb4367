"""How a bundle does on its test questions: of arrays in memory, or of a Parquet file of any length.

Both take the same way, batch by batch; in memory there is one batch. Of a question of a file
nothing is kept but its part and what came of it, some 20 bytes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farthing import bundle as bundles
from farthing.bundle import Bundle
from farthing.calibration.guarantees.agreement import AgreementPromise
from farthing.calibration.guarantees.escalated import EscalatedPromise
from farthing.calibration.guarantees.groups import groups_of
from farthing.calibration.guarantees.parity import ParityPromise
from farthing.calibration.guarantees.selective import SelectivePromise
from farthing.experiments.evaluate import AS_IT_IS, metrics, stream
from farthing.experiments.passing_on import Reference
from farthing.experiments.pipeline import (
    AS_BEFORE,
    DEFAULT,
    NO_MARKS,
    Split,
    check_kind,
    divided,
    doubts,
    opened,
    other_models,
    sizes_of,
)
from farthing.experiments.proofs import Part, reference_right
from farthing.experiments.significance import clopper_pearson
from farthing.experiments.verdict import Judged, judge
from farthing.methods.base import Progress, Silent
from farthing.methods.selective.policy import SelectivePolicy
from farthing.process.replay import Outcome
from farthing.process.replayed import Nested, Replayed, replay
from farthing.traces.arrays import RIGHT, BoolArray, FloatArray, TraceArrays
from farthing.traces.grades import check_graded, graded, same_as
from farthing.traces.long_file import LongFile
from farthing.traces.parquet import CHUNK_ROWS, count_rows
from farthing.traces.question_hashes import marks
from farthing.traces.splits import Parts

UNTOLD = "the bundle does not say which questions trained it: make sure that none of these did"
MEETINGS = {"train": "trained the policy", "calibrate": "set its threshold"}
"""What the questions that a bundle keeps marks of have done."""


@dataclass(frozen=True)
class Evaluated:
    """What was found on the test part."""

    bundle: Bundle
    metrics: Mapping[str, float]
    """Metric to value, by the names of `METRICS`: of the whole, where questions are passed on; of a
    policy that may give no answer also `answered` and `accuracy_answered`, of it alone."""
    intervals: Mapping[str, tuple[float, float]]
    """Exact 95 % interval of `coverage`, and of `coverage_solvable` where it exists."""
    sizes: Mapping[str, int]
    notes: tuple[str, ...]
    """What to doubt."""
    judged: Judged | None
    """What came of the promise; None where nothing was promised of a new question."""


def evaluate(folder: str | Path, traces: TraceArrays, *, split: Split = DEFAULT) -> Evaluated:
    """Measure a bundle on the test part, with its threshold or, where it has none, as it acts.

    Args:
        folder: the bundle.
        traces: the questions, of the kind that it was trained on.
        split: as in `train`; its seed is also that of the lots that a policy without a threshold
            draws.

    Raises:
        InputError: the traces have other roles or rounds than the bundle's.
        TooFewTracesError: there are fewer questions than the sizes ask for.
        BundleError: the folder is no bundle.
    """
    traces = graded_for(bundles.load(folder), traces)
    bundle, arrays, parts = opened(folder, traces, split)
    test = Part(traces.take(parts.test), arrays.take(parts.test))
    return _evaluated(bundle, [test], split.seed, parts, doubts(bundle, arrays, parts))


def measure(bundle: Bundle, test: Part, *, seed: int = 0) -> Evaluated:
    """Measure a bundle on test questions that are in memory.

    Args:
        bundle: a policy with its threshold.
        test: questions that it has not met; where it has, a note says how many.
        seed: of the lots that a policy without a threshold draws.
    """
    check_graded(test.played)
    rows = np.arange(len(test.played))
    none = rows[:0]
    return _evaluated(bundle, [test], seed, Parts(none, none, rows), ())


def evaluate_file(
    folder: str | Path,
    path: str | Path,
    *,
    split: Split = DEFAULT,
    rows: int = CHUNK_ROWS,
    progress: Progress | None = None,
) -> Evaluated:
    """Measure a bundle on a Parquet file's test part: the figures of `evaluate`, to the last bit.

    Args:
        folder: the bundle.
        path: a file that `write_parquet` wrote.
        split: as in `evaluate`.
        rows: questions that are read at a time.
        progress: is told how far it is.

    Raises:
        TraceFormatError: the file is not Parquet or not of traces.
        InputError, TooFewTracesError, BundleError: as in `evaluate`.
    """
    bundle = bundles.load(folder)
    file = LongFile.open(path, rows, _counting(progress or Silent(), 2 * count_rows(path)))
    first = file.first
    check_kind(folder, bundle, first)
    parts = divided(file.outline(), split)
    unknown = () if "train" in bundle.questions else (UNTOLD,)
    notes = (*unknown, *other_models(bundle, first.models))
    batches = (graded_for(bundle, batch) for batch in file.batches(parts.test))
    test = (Part(batch, file.played(batch)) for batch in batches)
    return _evaluated(bundle, test, split.seed, parts, notes)


def graded_for(bundle: Bundle, traces: TraceArrays) -> TraceArrays:
    """Return questions graded by what a bundle promises, else by what it was trained on.

    Raises:
        InputError: that is what is right, and nobody graded some answers.
        UnknownNameError: the bundle's reference is no role of the traces.
    """
    certificate = bundle.certificate
    promise = certificate.promise if certificate and certificate.promises else None
    if isinstance(promise, AgreementPromise):
        return graded(traces, same_as(promise.reference))
    if promise is None and bundle.origin.grade != RIGHT:
        return graded(traces, bundle.origin.grade)
    check_graded(traces)
    return traces


def _counting(progress: Progress, total: int) -> Callable[[int], None]:
    """Add up the questions that were read, and pass on how many it is so far."""
    done = 0

    def add(read: int) -> None:
        nonlocal done
        done += read
        progress.update(done, total, {})

    return add


def _evaluated(
    bundle: Bundle, test: Iterable[Part], seed: int, parts: Parts, notes: tuple[str, ...]
) -> Evaluated:
    rng, outcomes, references, wholes = stream(bundle.kind, seed), [], [], []
    met = dict.fromkeys(MEETINGS, NO_MARKS)
    for batch in test:
        outcomes.append(_act(bundle, batch.played, rng))
        references.append(_reference(bundle, batch.recorded))
        wholes.append(_whole(bundle, batch, outcomes[-1]))
        ours = marks(batch.played) if bundle.questions else NO_MARKS
        met = {w: m | (ours & bundle.questions.get(w, NO_MARKS)) for w, m in met.items()}
    found, whole = Outcome.joined(outcomes), Outcome.joined(wholes)
    overlap = _met({which: len(those) for which, those in met.items()}, len(parts.test))
    judged = judge(bundle.certificate, found, np.concatenate(references))
    figures = metrics(whole) | _answered(bundle, found)
    return Evaluated(
        bundle, figures, _intervals(whole), sizes_of(parts), (*notes, *overlap), judged
    )


def _whole(bundle: Bundle, batch: Part, found: Outcome) -> Outcome:
    """Return what comes of questions once those without an answer are passed on, if they are."""
    promise = bundle.certificate and bundle.certificate.promise
    if not isinstance(promise, EscalatedPromise) or not isinstance(bundle.policy, SelectivePolicy):
        return found
    made = bundle.policy.calls_made(batch.played)
    return Reference.of(batch, promise.reference).whole(found, made)


def _answered(bundle: Bundle, found: Outcome) -> dict[str, float]:
    promise = bundle.certificate and bundle.certificate.promise
    if not isinstance(promise, SelectivePromise | EscalatedPromise):
        return {}
    given = found.set_size > 0
    right = float(found.best_correct[given].mean()) if given.any() else np.nan
    return {"answered": float(given.mean()), "accuracy_answered": right}


def _intervals(found: Outcome) -> dict[str, tuple[float, float]]:
    intervals = {"coverage": clopper_pearson(int(found.covered.sum()), len(found.covered))}
    if solvable := int(found.solvable.sum()):
        right = int(found.in_set.sum())
        intervals["coverage_solvable"] = clopper_pearson(right, solvable)
    return intervals


def _act(bundle: Bundle, part: TraceArrays, rng: np.random.Generator) -> Outcome:
    replayed = replay(bundle.policy, part, bundle.empty)
    if bundle.kappa is None and bundle.policy.stochastic and isinstance(replayed, Nested):
        return replayed.draw(rng)
    return _act_with(replayed, _kappas(bundle, part))


def _kappas(bundle: Bundle, part: TraceArrays) -> FloatArray:
    """Return each question's threshold, [n]: its group's, where the promise is per group."""
    whole = AS_IT_IS if bundle.kappa is None else bundle.kappa
    of_group = groups_of(bundle.certificate)
    if not of_group:
        return np.full(len(part), whole)
    named = [of_group[n].kappa if n in of_group else whole for n in part.group_names]
    return np.array([*named, whole])[part.group]  # no group is -1, and takes the last


def _act_with(replayed: Replayed, kappas: FloatArray) -> Outcome:
    """Act with a threshold a question: once for all that share one."""
    values, which = np.unique(kappas, return_inverse=True)
    places = [np.flatnonzero(which == i) for i in range(len(values))]
    pieces = [
        replayed.take(place).act(float(kappa)) for place, kappa in zip(places, values, strict=True)
    ]
    return Outcome.joined(pieces).take(np.argsort(np.concatenate(places)))


def _reference(bundle: Bundle, recorded: TraceArrays) -> BoolArray:
    """Return whether the reference of a parity is right, [n]; [0] where there is none."""
    promise = bundle.certificate and bundle.certificate.promise
    if not isinstance(promise, ParityPromise | EscalatedPromise) or promise.reference is None:
        return np.zeros(0, dtype=bool)
    return reference_right(recorded, promise.reference)


def _met(met: Mapping[str, int], n: int) -> list[str]:
    """Say how many of the test questions the bundle has met."""
    return [
        f"{met[which]:,} of the {n:,} test questions {did}, so these figures flatter it; "
        f"{AS_BEFORE}"
        for which, did in MEETINGS.items()
        if met[which]
    ]

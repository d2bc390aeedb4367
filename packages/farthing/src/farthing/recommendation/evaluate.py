"""How a bundle does on its test questions: of arrays in memory, or of a Parquet file of any length.

Both take the same way, batch by batch; in memory there is one batch. Of a question of a file
nothing is kept but its part and what came of it, some 30 bytes, and 9 to 17 for each single model.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import TooFewTracesError
from farthing.methods.base import Progress, Silent
from farthing.process.replay import ReplayOutcome
from farthing.process.value import AnswerFigures, Interval, PolicyValue
from farthing.promises.certificate import Certificate
from farthing.promises.figures import Figure, clopper_pearson
from farthing.promises.observed import Facts
from farthing.promises.payload import Reads
from farthing.promises.statistics.clusters import Clusters, clustered_share
from farthing.recommendation.bundle_run import run_bundle, with_escalation
from farthing.recommendation.certify import MEETINGS
from farthing.recommendation.metrics import metrics, stream
from farthing.recommendation.played import ReportingQuestions
from farthing.recommendation.promised_grade import read
from farthing.recommendation.prove import reference_right
from farthing.recommendation.savings import (
    LEVEL,
    SingleModels,
    chosen_by_these,
    promised_by,
    requests_of,
    saved_within,
    savings_of,
)
from farthing.recommendation.splits import (
    DEFAULT,
    Split,
    check_kind,
    models_of,
    open_bundle,
    sizes_of,
    split_bundle_questions,
)
from farthing.recommendation.warnings import AS_BEFORE, doubts, other_models
from farthing.traces.arrays import RIGHT, BoolArray, TraceArrays
from farthing.traces.copies import Content, check_every_request, note, one_of_each
from farthing.traces.costs import check_costs, refuse_unpriced
from farthing.traces.eligibility import Missing, alike, asked_all
from farthing.traces.fingerprint import seen_before
from farthing.traces.grades.below_chance import check_gold
from farthing.traces.grades.overlay import check_graded, graded
from farthing.traces.near_copies import near_note
from farthing.traces.parquet import CHUNK_ROWS, count_rows, read_parquet
from farthing.traces.parquet_file import ChunkedTraces
from farthing.traces.splits import Parts

Errors = Callable[[float], float]
"""How many standard errors figures are off at most, by the chance that any is farther off."""
UNTOLD = "the bundle does not say which questions trained it: make sure that none of these did"


@dataclass(frozen=True)
class BundleEvaluation:
    """What was found on the test part."""

    bundle: Bundle
    metrics: Mapping[str, float]
    """Metric to value, by the names of `METRICS`: of the whole, where questions are passed on; of a
    policy that may give no answer also `answered` and `accuracy_answered`, of it alone."""
    intervals: Mapping[str, tuple[float, float]]
    """95 % interval of `coverage`, and of `coverage_solvable` where it exists: exact; of requests
    valid by question."""
    sizes: Mapping[str, int]
    notes: tuple[str, ...]
    """What to doubt."""
    judged: Figure | None
    """What came of the promise; None where nothing was promised of a new question."""
    value: PolicyValue
    """What it costs and gets right beside the reference."""
    alone: Mapping[str, AnswerFigures | None]
    """Role to what it came to by itself; None where it was not recorded alone."""
    saved_within: Interval | None = None
    """What is saved, with the confidence below."""
    confidence: float = 1 - LEVEL
    """That of the promise; of one that names none 95 %."""


def evaluate(
    folder: str | Path,
    traces: TraceArrays,
    *,
    split: Split = DEFAULT,
    missing: Missing | None = None,
) -> BundleEvaluation:
    """Measure a bundle on the test part, with its threshold or, where it has none, as it acts.

    A recommended bundle divided the questions in a way of its own. Where no sizes are asked for, it
    is measured on all that it has not met.

    Args:
        folder: the bundle.
        traces: the questions, of the kind that it was trained on.
        split: as in `train`; its seed is also that of the lots that a policy without a threshold
            draws.
        missing: what to take of calls that were not made; None: what the traces say.
    """
    bundle = bundles.load(folder)
    traces, asked_of = asked_all(traces, models_of(bundle, None, traces), missing)
    check_costs(traces)
    traces = graded_for(bundle, traces)
    check_gold(traces)
    bundle, arrays, parts = open_bundle(folder, traces, split)
    if _divides_by_itself(bundle, split):
        parts = _unmet(bundle, [arrays])
    parts = replace(parts, test=alike(traces, parts.test))
    parts, copies = _counted(bundle, parts, traces.content)
    test = ReportingQuestions(traces.take(parts.test), arrays.take(parts.test))
    about = () if asked_of is None else (asked_of.note(),)
    copies += tuple(filter(None, [near_note(test.recorded)]))
    notes = (*about, *doubts(bundle, traces, arrays, parts), *copies)
    return _evaluated(bundle, [test], split.seed, parts, notes)


def evaluate_in_memory(
    bundle: Bundle, test: ReportingQuestions, *, seed: int = 0, errors: Errors | None = None
) -> BundleEvaluation:
    """Measure a bundle on test questions that are in memory.

    Args:
        bundle: a policy with its threshold.
        test: questions that it has not met; where it has, a note says how many.
        seed: of the lots that a policy without a threshold draws.
        errors: where the same questions proved and chose it: half the width of intervals, in
            standard errors, at a level (`savings.off_by`). Whether the promise was kept is not
            said then.
    """
    check_graded(test.played)
    rows = np.arange(len(test.played))
    parts, copies = _counted(bundle, Parts(rows[:0], rows[:0], rows), test.recorded.content)
    test = test.take(parts.test)
    return _evaluated(bundle, [test], seed, parts, copies, errors)


def evaluate_file(
    folder: str | Path,
    path: str | Path,
    *,
    split: Split = DEFAULT,
    rows: int = CHUNK_ROWS,
    progress: Progress | None = None,
    missing: Missing | None = None,
) -> BundleEvaluation:
    """Measure a bundle on a Parquet file's test part: the figures of `evaluate`, to the last bit.

    A file in which calls are missing, or were drawn by a lot, is read as a whole.

    Args:
        folder: the bundle.
        path: a file that `write_parquet` wrote.
        split: as in `evaluate`.
        rows: questions that are read at a time.
        progress: is told how far it is.
        missing: as in `evaluate`.
    """
    bundle = bundles.load(folder)
    told = _counting(progress or Silent(), 2 * count_rows(path))
    file = ChunkedTraces.open(path, rows, told, side_by_side=bundle.origin.is_pool)
    first = file.first
    check_kind(folder, bundle, first)
    refuse_unpriced(first)
    outline = file.outline()
    if outline.partly:
        return evaluate(folder, read_parquet(path), split=split, missing=missing)
    parts = split_bundle_questions(outline, split)
    if _divides_by_itself(bundle, split):
        every = np.arange(count_rows(path))
        parts = _unmet(bundle, map(file.played, file.batches(every)))
    parts, copies = _counted(bundle, parts, outline.content)
    unknown = () if "train" in bundle.questions else (UNTOLD,)
    notes = (*unknown, *other_models(bundle, first.models), *copies)
    batches = (graded_for(bundle, batch) for batch in file.batches(parts.test))
    test = (ReportingQuestions(batch, file.played(batch)) for batch in batches)
    return _evaluated(bundle, test, split.seed, parts, notes)


def _counted(bundle: Bundle, parts: Parts, content: Content) -> tuple[Parts, tuple[str, ...]]:
    """Return parts whose test questions are distinct, and a note where copies were left out.

    What is promised per request is measured per request.
    """
    asked = content[parts.test]
    rows = one_of_each(asked)
    copies = tuple(filter(None, [note(len(asked), len(rows))]))
    if bundle.certificate is not None and bundle.certificate.per_request:
        return parts, copies
    return replace(parts, test=parts.test[rows]), copies


def _divides_by_itself(bundle: Bundle, split: Split) -> bool:
    return "choose" in bundle.questions and not split.sizes


def _unmet(bundle: Bundle, pieces: Iterable[TraceArrays]) -> Parts:
    """Return the complete questions that a bundle has not met as its test part."""
    by_text = bundle.certificate is None or not bundle.certificate.per_request
    fresh = [
        piece.complete
        & ~np.any([*seen_before(piece, bundle.questions, by_text=by_text).values()], 0)
        for piece in pieces
    ]
    rows = np.flatnonzero(np.concatenate(fresh))
    if not rows.size:
        raise TooFewTracesError(
            "the bundle has met every one of these questions, so they cannot judge it; give others"
        )
    return Parts(rows[:0], rows[:0], rows)


def graded_for(bundle: Bundle, traces: TraceArrays) -> TraceArrays:
    """Return questions graded by what a bundle promises, else by what it was trained on.

    A parity that was proved of questions that nobody graded is measured as it was proved: what is
    not the reference's answer counts as wrong.
    """
    certificate = bundle.certificate
    promise = certificate.promise if certificate and certificate.promises else None
    if promise is None and bundle.origin.grade != RIGHT:
        return graded(traces, bundle.origin.grade)
    reads = Reads() if promise is None else promise.reads
    if reads.as_proved and bundle.value and bundle.value.grade != RIGHT:
        return graded(traces, bundle.value.grade)
    return read(reads, traces)


def _counting(progress: Progress, total: int) -> Callable[[int], None]:
    """Add up the questions that were read, and pass on how many it is so far."""
    done = 0

    def add(read: int) -> None:
        nonlocal done
        done += read
        progress.update(done, total, {})

    return add


def _evaluated(
    bundle: Bundle,
    test: Iterable[ReportingQuestions],
    seed: int,
    parts: Parts,
    notes: tuple[str, ...],
    errors: Errors | None = None,
) -> BundleEvaluation:
    proved = errors is not None
    rng, outcomes, references, singles = stream(bundle.kind, seed), [], [], []
    wholes, asked = [], []
    meetings = dict.fromkeys(MEETINGS, 0)
    by_request = bundle.certificate is not None and bundle.certificate.per_request
    for batch in test:
        if by_request:
            check_every_request(batch.recorded)
        outcomes.append(run_bundle(bundle, batch, rng))
        singles.append(SingleModels.of(batch.recorded))
        asked.append(batch.recorded.content)
        references.append(_reference(bundle, batch.recorded))
        wholes.append(with_escalation(bundle, batch, outcomes[-1]))
        seen = seen_before(batch.played, bundle.questions, by_text=not by_request)
        meetings = {w: m + int(seen[w].sum()) if w in seen else m for w, m in meetings.items()}
    found, whole = ReplayOutcome.joined(outcomes), ReplayOutcome.joined(wholes)
    overlap = [] if proved else _met(meetings, len(parts.test))
    alone, promised = SingleModels.joined(singles), promised_by(bundle.certificate)
    clusters = requests_of(bundle.certificate, np.concatenate(asked))
    theirs = np.concatenate(references)
    known = Facts(right=theirs if len(theirs) else None, clusters=clusters)
    value = savings_of(whole, alone, bundle.reference, "test", promised=promised, clusters=clusters)
    if errors is not None:
        value = chosen_by_these(value, whole, alone, errors(LEVEL))
    level = float(getattr(bundle.certificate and bundle.certificate.promise, "delta", LEVEL))
    within = None
    if value.reference is not None:
        paid = alone.cost_nano[:, alone.roles.index(value.reference)]
        wide = None if errors is None else errors(level)
        within = saved_within(whole.cost_nano, paid, 1 - level, clusters, wide)
    return BundleEvaluation(
        bundle,
        metrics(whole) | _answered(bundle, found),
        _intervals(whole, clusters),
        sizes_of(parts),
        (*notes, *overlap),
        None if proved else _realised(bundle.certificate, found, known, alone.grade),
        value,
        alone.figures(),
        within,
        1 - level,
    )


def _realised(
    certificate: Certificate | None, found: ReplayOutcome, known: Facts, grade: str
) -> Figure | None:
    """Return what came of a promise; one that is read as it was proved may be known at worst."""
    if certificate is None or not certificate.promises:
        return None
    figure = certificate.promise.realised(found, known)
    if figure is None or grade == RIGHT or not certificate.promise.reads.as_proved:
        return figure
    return replace(figure, what=f"{figure.what}, at worst,")


def _answered(bundle: Bundle, found: ReplayOutcome) -> dict[str, float]:
    if bundle.certificate is None or not bundle.certificate.promise.withholds:
        return {}
    given = found.set_size > 0
    right = float(found.best_correct[given].mean()) if given.any() else np.nan
    return {"answered": float(given.mean()), "accuracy_answered": right}


def _intervals(found: ReplayOutcome, clusters: Clusters | None) -> dict[str, tuple[float, float]]:
    """Return the intervals of shares: exact, or valid by question where requests count."""
    shares = {"coverage": np.ones_like(found.solvable)}
    if found.solvable.any():
        shares["coverage_solvable"] = found.solvable
    right = {"coverage": found.covered, "coverage_solvable": found.in_set}
    return {
        name: clopper_pearson(int(right[name][of].sum()), int(of.sum()))
        if clusters is None
        else clustered_share(right[name][of], clusters.of(of), 0.05)[1]
        for name, of in shares.items()
    }


def _reference(bundle: Bundle, recorded: TraceArrays) -> BoolArray:
    """Return whether the reference that a promise is held to is right, [n]; [0]: there is none."""
    role = bundle.certificate and bundle.certificate.promise.held_to
    if role is None or role not in recorded.roles:
        return np.zeros(0, dtype=bool)
    return reference_right(recorded, role)


def _met(met: Mapping[str, int], n: int) -> list[str]:
    """Say how many of the test questions the bundle has met."""
    return [
        f"{met[which]:,} of the {n:,} test questions {did}, so these figures flatter it; "
        f"{AS_BEFORE}"
        for which, did in MEETINGS.items()
        if met[which]
    ]

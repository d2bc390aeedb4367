"""How a bundle does on its test questions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import TooFewTracesError
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
    models_of,
    open_bundle,
    sizes_of,
)
from farthing.recommendation.warnings import AS_BEFORE, doubts
from farthing.traces.arrays import RIGHT, BoolArray, TraceArrays
from farthing.traces.copies import Content, check_every_request, near_note, note, one_of_each
from farthing.traces.costs import check_costs
from farthing.traces.eligibility import Missing, alike, asked_all
from farthing.traces.fingerprint import seen_before
from farthing.traces.grades.below_chance import check_gold
from farthing.traces.grades.overlay import check_graded, graded
from farthing.traces.splits import Parts

Errors = Callable[[float], float]
"""How many standard errors figures are off at most, by the chance that any is farther off."""


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
    if "choose" in bundle.questions and not split.sizes:
        parts = _unmet(bundle, arrays)
    parts = replace(parts, test=alike(traces, parts.test))
    parts, copies = _counted(bundle, parts, traces.content)
    test = ReportingQuestions(traces.take(parts.test), arrays.take(parts.test))
    about = () if asked_of is None else (asked_of.note(),)
    copies += tuple(filter(None, [near_note(test.recorded)]))
    notes = (*about, *doubts(bundle, traces, arrays, parts), *copies)
    return _evaluated(bundle, test, split.seed, parts, notes)


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
    return _evaluated(bundle, test, seed, parts, copies, errors)


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


def _unmet(bundle: Bundle, arrays: TraceArrays) -> Parts:
    """Return the complete questions that a bundle has not met as its test part."""
    by_text = bundle.certificate is None or not bundle.certificate.per_request
    met = np.any([*seen_before(arrays, bundle.questions, by_text=by_text).values()], 0)
    rows = np.flatnonzero(arrays.complete & ~met)
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


def _evaluated(
    bundle: Bundle,
    test: ReportingQuestions,
    seed: int,
    parts: Parts,
    notes: tuple[str, ...],
    errors: Errors | None = None,
) -> BundleEvaluation:
    proved = errors is not None
    by_request = bundle.certificate is not None and bundle.certificate.per_request
    if by_request:
        check_every_request(test.recorded)
    found = run_bundle(bundle, test, stream(bundle.kind, seed))
    whole = with_escalation(bundle, test, found)
    seen = seen_before(test.played, bundle.questions, by_text=not by_request)
    overlap = [] if proved else _met(seen, len(parts.test))
    alone, promised = SingleModels.of(test.recorded), promised_by(bundle.certificate)
    clusters = requests_of(bundle.certificate, test.recorded.content)
    theirs = _reference(bundle, test.recorded)
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


def _met(seen: Mapping[str, BoolArray], n: int) -> list[str]:
    return [
        f"{seen[which].sum():,} of the {n:,} test questions {did}, so these figures flatter it; "
        f"{AS_BEFORE}"
        for which, did in MEETINGS.items()
        if which in seen and seen[which].any()
    ]

"""What a policy answers on recorded questions."""

from dataclasses import dataclass, replace

import numpy as np

from farthing.api.questions import Traces
from farthing.bundle.base import Bundle
from farthing.money import usd_from_nano
from farthing.process.replay import ReplayOutcome
from farthing.recommendation import splits
from farthing.recommendation.bundle_run import run_bundle, with_escalation
from farthing.recommendation.metrics import stream
from farthing.recommendation.played import ReportingQuestions
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.eligibility import asked_all


@dataclass(frozen=True)
class Prediction:
    """What a policy answers on one recorded question, and what that costs."""

    id: str
    best: str | None
    """Its answer; None where it gives none, or `known` is false."""
    answers: tuple[str, ...] = ()
    """The set of answers that it returns, in the order in which they were recorded."""
    cost_usd: float | None = None
    """Of the calls that it makes, in US dollars; None where nobody recorded what they cost."""
    known: bool = True
    """Whether every call that it may make was recorded; where not, nothing is known."""


def predictions(bundle: Bundle, traces: Traces, seed: int) -> list[Prediction]:
    """Return what a bundle does on each question, in their order; no grade is read."""
    models = splits.models_of(bundle, None, traces.arrays)
    some, _ = asked_all(traces.arrays, models, traces.dataset.missing)
    priced = all(share < 1 for share in some.unpriced.values())
    # Only grades say what a policy answers: were one answer alone right, `best_correct` says
    # whether it is the one that is given, and `in_set` whether it is among those returned.
    codes = range(int(some.answer.max(initial=NO_ANSWER)) + 1)
    found = [_outcome(bundle, _right_alone(some, code), seed) for code in [NO_ANSWER, *codes]]
    texts = _texts(traces)
    known: dict[str, Prediction] = {}
    for i, name in enumerate(some.ids.tolist()):
        said = texts.get(name, {})
        given = [said.get(k, str(k)) for k in codes if found[k + 1].in_set[i]]
        best = [said.get(k, str(k)) for k in codes if found[k + 1].best_correct[i]]
        usd = usd_from_nano(int(found[0].cost_nano[i])) if priced else None
        known[name] = Prediction(name, best[0] if best else None, tuple(given), usd)
    every = traces.arrays.ids.tolist()
    return [known.get(name, Prediction(name, None, known=False)) for name in every]


def _right_alone(traces: TraceArrays, code: int) -> TraceArrays:
    """Return questions of which one answer alone is right; with `NO_ANSWER` none is."""
    right = (traces.answer == code) & (traces.answer != NO_ANSWER)
    return replace(traces, correct=right, ungraded=np.zeros_like(right))


def _outcome(bundle: Bundle, traces: TraceArrays, seed: int) -> ReplayOutcome:
    played = splits.as_played("these traces", bundle, traces)
    part = ReportingQuestions(traces, played)
    return with_escalation(bundle, part, run_bundle(bundle, part, stream(bundle.kind, seed)))


def _texts(traces: Traces) -> dict[str, dict[int, str]]:
    """Return question to the number of an answer to its text, as it was first recorded."""
    arrays = traces.arrays
    found: dict[str, dict[int, str]] = {}
    place = {role: k for k, role in enumerate(arrays.roles)}
    for i, trace in enumerate(traces.records or ()):
        texts = found.setdefault(trace.id, {})
        for call in trace.calls:
            if call.answer is not None and call.role in place and call.round <= arrays.horizon:
                code = int(arrays.answer[i, call.round - 1, place[call.role]])
                texts.setdefault(code, call.answer)
    return found

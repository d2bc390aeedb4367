"""What a method is likely to cost once its promise is proved, by questions that trained nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.process.replay import Outcome
from farthing.promises.base import Promise
from farthing.promises.statistics.expected_cost import Allowed
from farthing.recommendation.bundle_run import run_bundle
from farthing.recommendation.played import PlayedPolicy, QuestionPart
from farthing.recommendation.prove import promise
from farthing.recommendation.replayed_candidate import stream
from farthing.recommendation.start_point import Beginning, beginning
from farthing.traces.arrays import FloatArray


@dataclass(frozen=True)
class Trial:
    """A trained method, and what it is likely to come to."""

    name: str
    bundle: Bundle
    expected_usd: float
    """A question, once so many questions have proved a point of it, or none; where answers may be
    withheld, with the reference's answer in their place."""
    accuracy: float
    """Of the point that is proved if new questions are like these."""
    latency_s: float | None
    """95th percentile of that point, in seconds, where it was recorded."""
    row: FloatArray | None
    """The thresholds to prove, from the last one on to the first; None: the proof lays them out."""


@dataclass(frozen=True)
class SelectionTask:
    """On what, for what, and with how many questions to prove it, methods are tried."""

    asked: Promise
    choose: Callable[[Bundle], QuestionPart]
    """The questions that choose, as a bundle plays them."""
    train: Callable[[Bundle], QuestionPart]
    prove: int
    """Questions that will prove."""
    reference: str | None
    seed: int


def estimate_trial(contest: SelectionTask, name: str, bundle: Bundle) -> Trial:
    """Estimate what a trained method will cost where it keeps the promise.

    Of parity and agreement the proof is run on questions that are drawn from these; of any other
    promise, on these themselves.

    Raises:
        CalibrationError: the promise cannot be calibrated on these questions.
        InputError: the policy cannot play them.
    """
    if contest.asked.layout == "descending":
        return _expected_cost_by_losses(contest, name, bundle)
    return _expected_cost_by_proof(contest, name, bundle)


def _expected_cost_by_losses(contest: SelectionTask, name: str, bundle: Bundle) -> Trial:
    asked, part = contest.asked, contest.choose(bundle)
    plays = PlayedPolicy(bundle.policy, bundle.empty, None)
    reference, n = contest.reference or "", contest.prove
    found = beginning(asked, plays, part, reference, n, contest.seed)
    point = _expected_point(found, partial(_proves, asked.allows(n), n))
    kappa = float(found.points.values[point])
    return Trial(
        name=name,
        bundle=bundle,
        expected_usd=float(found.expected_usd.min()),
        accuracy=float(found.points.correct[:, point].mean()),
        latency_s=_slow(structs.replace(bundle, kappa=kappa), part),
        row=found.row,
    )


def _proves(allowed: Allowed, n: int, lost: float, won: float) -> bool:
    return bool(round(lost * n) <= allowed(round(won * n)))


def _expected_point(found: Beginning, proves: Callable[[float, float], bool]) -> int:
    """Return the point that testing from the start down chooses if new questions are like these."""
    cost, best = found.points.cost_nano.sum(axis=0), found.start
    for point in range(found.start, -1, -1):
        if not proves(float(found.lost[:, point].mean()), float(found.won[:, point].mean())):
            break
        best = point if cost[point] < cost[best] else best
    return best


def _expected_cost_by_proof(contest: SelectionTask, name: str, bundle: Bundle) -> Trial:
    part = contest.choose(bundle)
    found = promise(contest.asked, bundle, contest.train(bundle), part, None)
    kept = structs.replace(
        bundle,
        policy=found.policy,
        kappa=found.certificate.kappa,
        certificate=found.certificate,
        empty=found.empty,
    )
    done = run_bundle(kept, part.played, stream(bundle.kind, contest.seed))
    return Trial(
        name=name,
        bundle=bundle,
        expected_usd=_answering_all(contest, part, done) / 1e9,
        accuracy=float(done.best_correct.mean()),
        latency_s=_slow(kept, part),
        row=None,
    )


def _answering_all(contest: SelectionTask, part: QuestionPart, done: Outcome) -> float:
    """Return what a question costs, in nano-dollars, with the reference's answer to the rest.

    Of a selective promise the rest is what was given no answer: else who answers least costs least.
    """
    spent = float(done.cost_nano.mean())
    withheld = done.set_size == 0
    if not contest.asked.withholds or not withheld.any():
        return spent
    if contest.reference is None:
        return spent / max(1 - float(withheld.mean()), 1 / len(withheld))
    place = part.recorded.roles.index(contest.reference)
    return spent + float(np.where(withheld, part.recorded.cost_nano[:, 0, place], 0).mean())


def _slow(bundle: Bundle, part: QuestionPart) -> float | None:
    seconds = run_bundle(bundle, part.played, stream(bundle.kind, 0)).latency_s
    known = np.zeros(0) if seconds is None else seconds[~np.isnan(seconds)]
    return float(np.quantile(known, 0.95)) if known.size else None

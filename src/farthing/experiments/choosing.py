"""What a method is likely to cost once its promise is proved, by questions that trained nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.calibration.levels import exact_level, exact_margin
from farthing.calibration.prospects import (
    Allowed,
    Prospect,
    agreement_allows,
    expected_cost,
    parity_allows,
)
from farthing.experiments.acting import act
from farthing.experiments.evaluate import stream
from farthing.experiments.plays import Part, Plays, grid, points_of
from farthing.experiments.promises import Agreement, Parity, Promise, Selective
from farthing.experiments.proofs import promise
from farthing.process.operating_points import OperatingPoints
from farthing.process.replay import Outcome
from farthing.traces.arrays import FloatArray

NEAR = 0.2
"""What may be paid more, in expectation, to begin testing at a dearer point."""


@dataclass(frozen=True)
class Tried:
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
class Contest:
    """On what, for what, and with how many questions to prove it, methods are tried."""

    asked: Promise
    choose: Callable[[Bundle], Part]
    """The questions that choose, as a bundle plays them."""
    train: Callable[[Bundle], Part]
    prove: int
    """Questions that will prove."""
    reference: str | None
    seed: int


def prospect_of(contest: Contest, name: str, bundle: Bundle) -> Tried:
    """Estimate what a trained method will cost where it keeps the promise.

    Of parity and agreement the proof is run on questions that are drawn from these; of any other
    promise, on these themselves.

    Raises:
        CalibrationError: the promise cannot be calibrated on these questions.
        InputError: the policy cannot play them.
    """
    if isinstance(contest.asked, Parity | Agreement):
        return _by_losses(contest, contest.asked, name, bundle)
    return _by_proof(contest, name, bundle)


def _by_losses(contest: Contest, asked: Parity | Agreement, name: str, bundle: Bundle) -> Tried:
    part = contest.choose(bundle)
    plays = Plays(bundle.policy, bundle.empty, None)
    replayed = plays.replay(part.played)
    kappas = grid(replayed)
    points = points_of(replayed, kappas)
    place = part.recorded.roles.index(contest.reference or "")
    right = part.recorded.correct[:, 0, place]
    theirs = np.ones_like(right) if isinstance(asked, Agreement) else right
    lost, won = theirs[:, None] & ~points.correct, ~theirs[:, None] & points.correct
    fallback = part.recorded.cost_nano[:, 0, place] / 1e9
    prospect = Prospect(points.cost_nano / 1e9, lost, won, fallback)
    allowed = allows(asked, contest.prove)
    rng = np.random.default_rng(contest.seed)
    expected = expected_cost(prospect, contest.prove, allowed, rng)
    useful = prospect.cost.mean(axis=0) < fallback.mean()
    start = _begin(np.where(useful, expected, np.inf)) if useful.any() else 0
    point = _likely(points, lost, won, start, partial(_proves, allowed, contest.prove))
    return Tried(
        name=name,
        bundle=bundle,
        expected_usd=float(expected.min()),
        accuracy=float(points.correct[:, point].mean()),
        latency_s=_slow(structs.replace(bundle, kappa=float(kappas[point])), part),
        row=kappas[: start + 1],
    )


def _begin(expected: FloatArray) -> int:
    """Return where testing begins: the dearest point from which not much more is expected.

    Dearer points lose less. To begin there costs little, and where a cheap one fails a dearer one
    is proved already, rather than none.

    >>> _begin(np.array([2.0, 1.0, 1.01, 1.2, 3.0]))
    3
    """
    return int(np.flatnonzero(expected <= expected.min() * (1 + NEAR))[-1])


def allows(asked: Parity | Agreement, n: int) -> Allowed:
    """Return how many losses a promise allows on n questions."""
    epsilon, delta = float(exact_margin(asked.epsilon)), float(exact_level(asked.delta))
    of = agreement_allows if isinstance(asked, Agreement) else parity_allows
    return of(n, epsilon, delta)


def _proves(allowed: Allowed, n: int, lost: float, won: float) -> bool:
    return bool(round(lost * n) <= allowed(round(won * n)))


def _likely(
    points: OperatingPoints,
    lost: np.ndarray,
    won: np.ndarray,
    start: int,
    proves: Callable[[float, float], bool],
) -> int:
    """Return the point that testing from `start` down chooses if new questions are like these."""
    cost, best = points.cost_nano.sum(axis=0), start
    for point in range(start, -1, -1):
        if not proves(float(lost[:, point].mean()), float(won[:, point].mean())):
            break
        best = point if cost[point] < cost[best] else best
    return best


def _by_proof(contest: Contest, name: str, bundle: Bundle) -> Tried:
    part = contest.choose(bundle)
    found = promise(contest.asked, bundle, contest.train(bundle), part, None)
    kept = structs.replace(
        bundle,
        policy=found.policy,
        kappa=found.certificate.kappa,
        certificate=found.certificate,
        empty=found.empty,
    )
    done = act(kept, part.played, stream(bundle.kind, contest.seed))
    return Tried(
        name=name,
        bundle=bundle,
        expected_usd=_answering_all(contest, part, done) / 1e9,
        accuracy=float(done.best_correct.mean()),
        latency_s=_slow(kept, part),
        row=None,
    )


def _answering_all(contest: Contest, part: Part, done: Outcome) -> float:
    """Return what a question costs, in nano-dollars, with the reference's answer to the rest.

    Of a selective promise the rest is what was given no answer: else who answers least costs least.
    """
    spent = float(done.cost_nano.mean())
    withheld = done.set_size == 0
    if not isinstance(contest.asked, Selective) or not withheld.any():
        return spent
    if contest.reference is None:
        return spent / max(1 - float(withheld.mean()), 1 / len(withheld))
    place = part.recorded.roles.index(contest.reference)
    return spent + float(np.where(withheld, part.recorded.cost_nano[:, 0, place], 0).mean())


def _slow(bundle: Bundle, part: Part) -> float | None:
    seconds = act(bundle, part.played, stream(bundle.kind, 0)).latency_s
    known = np.zeros(0) if seconds is None else seconds[~np.isnan(seconds)]
    return float(np.quantile(known, 0.95)) if known.size else None

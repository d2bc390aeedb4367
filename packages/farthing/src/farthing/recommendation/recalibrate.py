"""Calibrate a bundle anew on later questions: the same policy, the same promise, new evidence."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec import structs

from farthing.bundle.base import Bundle
from farthing.errors import InputError, TooFewTracesError
from farthing.methods.selective.policy import SelectivePolicy
from farthing.process.budget import PerQuestion
from farthing.process.replay import ReplayOutcome
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.recommendation.bundle_run import run_bundle, with_escalation
from farthing.recommendation.certify import (
    Contender,
    Serving,
    met,
    prove_bundle,
    remembering,
)
from farthing.recommendation.metrics import stream
from farthing.recommendation.played import ProvingQuestions, Questions, TrainingQuestions
from farthing.recommendation.promised_grade import read_for
from farthing.recommendation.prove import LaidOut, counted
from farthing.recommendation.savings import about_sets
from farthing.recommendation.splits import as_played
from farthing.recommendation.warnings import other_models, other_system
from farthing.traces.arrays import BoolArray, IntArray, TraceArrays
from farthing.traces.copies import Content, CopyGroups, n_distinct, near_note, note
from farthing.traces.system import System

LAID_OUT, SHARE = 100, 4
"""Most questions that lay out the thresholds to test, and of how many that is one."""
FEWEST = 8


@dataclass(frozen=True)
class PointSummary:
    """What a threshold came to on the questions that prove."""

    cost_nano: float
    """Mean of a question, in nano-dollars."""
    good: float
    """The share of questions that keep the promise: whose answer, or of a promise about sets one of
    whose answers, has its grade."""


@dataclass(frozen=True)
class Recalibrated:
    """What came of calibrating a bundle anew."""

    bundle: Bundle
    """With the new threshold and certificate; not to be used where nothing is proved."""
    certificate: Certificate
    outlook: str
    """Where nothing was proved: what would probably be."""
    laid_out: int
    """Questions that laid the thresholds out, and prove nothing."""
    proving: int
    """All others."""
    new: PointSummary
    old: PointSummary
    """Of the bundle as it decides now, on the same questions."""
    alone_nano: dict[str, float]
    """Mean cost of each model that answers everything alone, in nano-dollars."""
    notes: tuple[str, ...]
    """What to doubt."""

    @property
    def proved(self) -> bool:
        """Whether the promise is proved at its level."""
        return self.certificate.promises


def recalibrate(
    folder: str | Path,
    bundle: Bundle,
    traces: TraceArrays,
    *,
    system: System | None = None,
    seed: int = 0,
) -> Recalibrated:
    """Prove a bundle's promise again, at the same level, on questions that came after it.

    Promises whose thresholds are tested in an order spend a quarter of the questions, a hundred at
    most, to lay that order out: chance draws them. All others prove.

    Args:
        folder: where the bundle is, for the messages.
        bundle: as it decides now; where a reference answers in its place, what was trained.
        traces: complete questions, drawn by chance from those that are to come. What trained,
            chose or proved the bundle before, by its text or its record, is left out, with a note.
        system: what they were made with; None where nobody knows.
        seed: of the draw.

    Raises:
        InputError: most of them trained, chose or proved the bundle before, or some are the very
            records that trained or chose it, or its promise cannot be proved anew.
        TooFewTracesError: too few others are left.
    """
    certificate = bundle.certificate
    asked = asked_again(certificate)
    trained = bundle.trained or bundle
    recorded = read_for(asked, traces, trained.origin.grade)
    known, did = _met(bundle, as_played(folder, trained, recorded), asked)
    if (n := n_distinct(traces.content[~known])) < FEWEST:
        raise TooFewTracesError(
            f"{n} distinct questions are too few to prove anything; it takes {FEWEST} or more"
        )
    left_out = f"{did}: these are left out, and nothing is promised of such" if did else ""
    recorded = recorded.take(~known)
    played = as_played(folder, trained, recorded)
    lay, rows = divided(recorded.content, asked, seed)
    train = TrainingQuestions(recorded.take(lay), played.take(lay))
    prove = ProvingQuestions(recorded.take(rows), played.take(rows))
    parts = {"lay": n_distinct(recorded.content[lay]), "prove": n_distinct(prove.recorded.content)}
    nano = certificate.question_budget_nano if certificate else None
    budget = None if nano is None else PerQuestion(nano, trained.origin.largest_nano)
    serving = Serving(budget, system, conditions=(f"{left_out}.",) if did else ())
    laid = None if budget else _laid_out(trained, asked, train)
    proof = prove_bundle(Contender(trained, asked, train, prove, serving, laid))
    made = remembering(proof.bundle, bundle, prove.played)
    before = counted(
        asked, ProvingQuestions(prove.recorded, as_played(folder, bundle, recorded).take(rows))
    )
    prove = counted(asked, prove)
    return Recalibrated(
        bundle=made,
        certificate=proof.certificate,
        outlook=proof.outlook,
        laid_out=parts["lay"],
        proving=parts["prove"],
        new=_kept(made, prove),
        old=_kept(bundle, before),
        alone_nano=_alone(prove.recorded),
        notes=(
            *filter(None, [note(len(recorded), n), near_note(recorded), left_out]),
            *other_models(trained, played.models),
            *other_system(trained, made.origin.system),
        ),
    )


def divided(content: Content, asked: Promise, seed: int) -> tuple[IntArray, IntArray]:
    """Return the rows that lay thresholds out, and those that prove, in ascending order.

    >>> from farthing.promises.kinds.agreement import Agreement
    >>> twelve = np.arange(1, 13, dtype=np.uint64)
    >>> lay, rows = divided(twelve, Agreement("large"), 0)
    >>> len(lay), len(rows), sorted([*lay.tolist(), *rows.tolist()]) == list(range(12))
    (3, 9, True)
    """
    together = CopyGroups.of(content, np.arange(len(content)))
    n = len(together.distinct)
    number = min(LAID_OUT, n // SHARE) if asked.layout != "critical" else 0
    order = np.random.default_rng(seed).permutation(together.distinct)
    return together.all_of(order[:number]), together.all_of(order[number:])


def _laid_out(bundle: Bundle, asked: Promise, lay: TrainingQuestions) -> LaidOut | None:
    """Return the thresholds of a policy that says how sure it is, from the clearest case down.

    Of any other, None: the proof lays them out.
    """
    policy, certificate = bundle.policy, bundle.certificate
    if asked.layout != "sure" or not isinstance(policy, SelectivePolicy):
        return None
    from farthing.recommendation.prove_selective import laid_out_by  # noqa: PLC0415 - scikit-learn

    name = getattr(certificate and certificate.promise, "candidate", "")
    return LaidOut(laid_out_by(policy, lay, asked.alpha), name)


def asked_again(certificate: Certificate | None) -> Promise:
    """Return the promise of a certificate, to be proved once more."""
    promise = None if certificate is None else certificate.promise
    asked = None if promise is None else promise.asked()
    if asked is not None:
        return asked
    kind = "nothing" if promise is None else f"'{promise.kind()}'"
    raise InputError(
        f"the bundle promises {kind}, which audits alone cannot prove anew; "
        "use `farthing traffic export` and `farthing recommend` or `farthing calibrate`"
    )


def _met(bundle: Bundle, played: TraceArrays, asked: Promise) -> tuple[BoolArray, str]:
    """Return which questions a bundle has met, as what was trained plays them, and what they did.

    Raises:
        InputError: they are most of these, or the very records that trained or chose it.
    """
    inside = (bundle.trained or bundle).questions  # where a reference answers in its place
    whole = structs.replace(bundle, questions={**inside, **bundle.questions})
    known, did = met(whole, played, "questions", by_text=asked.per != "request")
    made_it, _ = met(whole, played, "", by_text=False, roles=("train", "choose"))
    if made_it.any() or 2 * int(known.sum()) > len(known):
        raise InputError(f"{did}, so nothing could be promised anew; take later ones")
    return known, did


def _kept(bundle: Bundle, part: Questions) -> PointSummary:
    done: ReplayOutcome = with_escalation(
        bundle, part, run_bundle(bundle, part, stream(bundle.kind, 0))
    )
    good = done.covered if about_sets(bundle.certificate) else done.best_correct
    return PointSummary(float(done.cost_nano.mean()), float(good.mean()))


def _alone(recorded: TraceArrays) -> dict[str, float]:
    mean = recorded.cost_nano[:, 0].mean(axis=0).tolist()
    return dict(zip(recorded.roles, mean, strict=True)) if recorded.independent.all() else {}

"""What a bundle does on questions, with its threshold or, where it has none, as it acts."""

import numpy as np

from farthing.bundle.base import Bundle
from farthing.methods.selective.policy import SelectivePolicy
from farthing.process.batch_replay import NestedReplay, Replayed
from farthing.process.budget import PerQuestion
from farthing.process.replay import ReplayOutcome
from farthing.promises.kinds.groups import groups_of
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.metrics import NO_THRESHOLD
from farthing.recommendation.played import PlayedPolicy, Questions
from farthing.traces.arrays import FloatArray, TraceArrays


def run_bundle(bundle: Bundle, part: Questions, rng: np.random.Generator) -> ReplayOutcome:
    """Play questions as a bundle would answer them, under the budget that it was calibrated under.

    Args:
        bundle: the policy.
        part: the questions.
        rng: draws the actions of a policy that has no threshold and acts by lot.
    """
    replayed = part.replay(PlayedPolicy(bundle.policy, bundle.empty, _limit(bundle)))
    if bundle.kappa is None and bundle.policy.stochastic and isinstance(replayed, NestedReplay):
        return replayed.draw(rng)
    return _act_with(replayed, _kappas(bundle, part.played))


def with_escalation(
    bundle: Bundle, part: Questions, found: ReplayOutcome, to: str | None = None
) -> ReplayOutcome:
    """Return what comes of questions once those without an answer are passed on, if they are.

    Args:
        bundle: the policy.
        part: the questions.
        found: what the policy did by itself.
        to: who answers them where the promise passes them to nobody; None: nobody does.
    """
    role = (bundle.certificate.promise.passes_to if bundle.certificate else None) or to
    if role is None or not isinstance(bundle.policy, SelectivePolicy):
        return found
    made = bundle.policy.calls_made(part.played)
    return EscalationModel.of(part, role).whole(found, made)


def _limit(bundle: Bundle) -> PerQuestion | None:
    nano = bundle.certificate.question_budget_nano if bundle.certificate else None
    return None if nano is None else PerQuestion(nano, bundle.origin.largest_nano)


def _kappas(bundle: Bundle, part: TraceArrays) -> FloatArray:
    """Return each question's threshold, [n]: its group's, where the promise is per group."""
    whole = NO_THRESHOLD if bundle.kappa is None else bundle.kappa
    of_group = groups_of(bundle.certificate)
    if not of_group:
        return np.full(len(part), whole)
    named = [of_group[n].kappa if n in of_group else whole for n in part.group_names]
    return np.array([*named, whole])[part.group]  # no group is -1, and takes the last


def _act_with(replayed: Replayed, kappas: FloatArray) -> ReplayOutcome:
    """Act with a threshold a question: once for all that share one."""
    values, which = np.unique(kappas, return_inverse=True)
    places = [np.flatnonzero(which == i) for i in range(len(values))]
    pieces = [
        replayed.take(place).act(float(kappa)) for place, kappa in zip(places, values, strict=True)
    ]
    return ReplayOutcome.joined(pieces).take(np.argsort(np.concatenate(places)))

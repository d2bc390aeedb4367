"""One call decides: a promise about a trained policy, made by choosing one of its thresholds.

The menu is the policy at a row of thresholds. The row, its order and where testing begins come from
training questions alone; calibration questions only prove a setting, and test questions judge it.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from farthing.calibration import guarantees
from farthing.calibration.base import Certificate
from farthing.calibration.guarantees.budget import Spending
from farthing.calibration.guarantees.parity import Paired
from farthing.calibration.guarantees.selective import Answers, candidate_thresholds
from farthing.calibration.guarantees.weighted import Weighted
from farthing.errors import UnknownNameError
from farthing.features.rounds import FeatureSet
from farthing.methods.selective.policy import as_trained
from farthing.process.base import Policy
from farthing.process.operating_points import OperatingPoints
from farthing.process.replayed import Replayed, replay
from farthing.traces.arrays import BoolArray, FloatArray, TraceArrays
from farthing.traces.assemble import fingerprint

if TYPE_CHECKING:
    from farthing.methods.selective.learner import Learned

SETTINGS = 50
"""Largest number of thresholds in a menu."""


@dataclass(frozen=True)
class Selective:
    """Answers that are given are right with probability at least 1 - alpha."""

    alpha: Fraction
    delta: Fraction


@dataclass(frozen=True)
class Parity:
    """The single best answer is as often right as a reference role's first one, minus epsilon."""

    epsilon: Fraction
    delta: Fraction
    reference: str | None = None
    """A role of the traces; None: the one that is right most often in training."""


@dataclass(frozen=True)
class Budget:
    """A question costs less than a budget in expectation."""

    budget_nano: int
    most_nano: int
    """The largest possible cost of a question, from prices and limits."""
    delta: Fraction


@dataclass(frozen=True)
class Shift:
    """Coverage for the mix of questions that another file is a sample of."""

    alpha: Fraction
    target: TraceArrays
    """Laid out as the policy's own traces; its grades are not read."""


Asked = Selective | Parity | Budget | Shift


@dataclass(frozen=True)
class Part:
    """Some questions, as they were recorded and as the policy plays them."""

    recorded: TraceArrays
    played: TraceArrays
    """The same questions; a pool of models as a cascade."""


@dataclass(frozen=True)
class Promised:
    """What came of asking for a promise."""

    certificate: Certificate
    policy: Policy
    """The policy that it is about; for a selective promise one that says how sure it is."""
    empty: str
    """The mode of `replay.paths` that it holds in: a selective policy may return nothing."""


def promise(asked: Asked, policy: Policy, train: Part, calibrate: Part, empty: str) -> Promised:
    """Choose the threshold of a policy that keeps what is asked, and certify it.

    Args:
        asked: the promise.
        policy: as trained on `train`.
        train: questions to lay the menu out on.
        calibrate: questions that the policy and the menu have not seen.
        empty: the mode of `replay.paths` that the policy was trained for.

    Returns:
        The certificate, whose kappa is the chosen threshold. Where its `promises` is false nothing
        is proved, and no threshold of this policy carries the promise.

    Raises:
        UnknownNameError: the reference is no role of the traces.
        InputError: the target's traces are of another kind.
        TooFewTracesError: too few questions to estimate a shift from.
        CalibrationError: a level or budget outside its range, or costs above the largest possible.
    """
    policy, empty = as_trained(policy, empty)
    match asked:
        case Selective():
            from farthing.methods.selective.learner import confident  # noqa: PLC0415 - loads scikit-learn

            return selective(asked, confident(policy, train.played, empty, asked.alpha), calibrate)
        case Parity():
            return Promised(_parity(asked, policy, train, calibrate, empty), policy, empty)
        case Budget():
            return Promised(_budget(asked, policy, train, calibrate, empty), policy, empty)
        case Shift():
            return Promised(_shift(asked, policy, train, calibrate, empty), policy, empty)


def selective(asked: Selective, learned: "Learned", calibrate: Part) -> Promised:
    """Prove that a policy's answers are right, from where training makes the clearest case on."""
    kappas = candidate_thresholds(learned.sure, learned.right, asked.alpha, SETTINGS)
    proof = points_of(replay(learned.policy, calibrate.played, "allow"), kappas)
    answers = Answers(proof.answered, proof.correct, thresholds=kappas, kappas=kappas)
    mark = fingerprint(calibrate.played)
    certificate = guarantees.selective.certify(answers, asked.alpha, asked.delta, fingerprint=mark)
    return Promised(certificate, learned.policy, "allow")


def grid(trained: Replayed, most: int = SETTINGS) -> FloatArray:
    """Return falling thresholds, [G]: from where the policy does least to 0, where it does all.

    They are quantiles of the scores at which something changes on training questions.
    """
    steps = trained.thresholds()
    picked = np.unique(np.quantile(steps, np.linspace(0, 1, most - 1), method="nearest"))
    return np.concatenate([picked[::-1], [0.0]])


def points_of(replayed: Replayed, kappas: FloatArray) -> OperatingPoints:
    """Return what the policy costs and answers at each threshold; `covered` is that of its set."""
    acted = [replayed.act(float(kappa)) for kappa in kappas]
    return OperatingPoints(
        values=kappas,
        cost_nano=np.stack([found.cost_nano for found in acted], axis=1),
        correct=np.stack([found.best_correct for found in acted], axis=1),
        answered=np.stack([found.set_size > 0 for found in acted], axis=1),
        covered=np.stack([found.covered for found in acted], axis=1),
        calls=np.stack([found.length for found in acted], axis=1),
        set_size=np.stack([found.set_size for found in acted], axis=1),
        answers=np.stack([found.set_size_leaves for found in acted], axis=1),
    )


def strongest(recorded: TraceArrays) -> str:
    """Return the role whose first answer is right most often; of equals the first."""
    return recorded.roles[int(recorded.correct[:, 0].mean(axis=0).argmax())]


def reference_right(recorded: TraceArrays, role: str) -> BoolArray:
    """Return whether a role's first answer is right, [n].

    Raises:
        UnknownNameError: there is no such role.
    """
    if role not in recorded.roles:
        raise UnknownNameError("role", role, recorded.roles)
    right: BoolArray = recorded.correct[:, 0, recorded.roles.index(role)]
    return right


def _parity(asked: Parity, policy: Policy, train: Part, calibrate: Part, empty: str) -> Certificate:
    """Begin at the setting that is right most often in training, and go cheaper from there."""
    role = asked.reference or strongest(train.recorded)
    reference = reference_right(calibrate.recorded, role)
    menu = _trained_points(policy, train, empty)
    right = menu.correct.sum(axis=0)
    kappas = menu.values[: int(np.flatnonzero(right == right.max())[-1]) + 1]
    proof = points_of(replay(policy, calibrate.played, empty), kappas)
    paired = Paired(proof.cost_nano, proof.correct, reference, role=role, kappas=kappas)
    mark = fingerprint(calibrate.played)
    return guarantees.parity.certify(paired, asked.epsilon, asked.delta, fingerprint=mark)


def _budget(asked: Budget, policy: Policy, train: Part, calibrate: Part, empty: str) -> Certificate:
    menu = _trained_points(policy, train, empty)
    proof = points_of(replay(policy, calibrate.played, empty), menu.values)
    spending = Spending(proof.cost_nano, proof.covered, asked.most_nano, kappas=menu.values)
    mark = fingerprint(calibrate.played)
    return guarantees.budget.certify(spending, asked.budget_nano, asked.delta, fingerprint=mark)


def _shift(asked: Shift, policy: Policy, train: Part, calibrate: Part, empty: str) -> Certificate:
    """Weigh by what is seen in round 1; the largest weight is that of any question at hand."""
    features = FeatureSet.fit(train.played)
    old, new, mine = (
        features.transform(part)[:, 0] for part in (train.played, asked.target, calibrate.played)
    )
    from farthing.experiments.density_ratio import fit_density_ratio  # noqa: PLC0415 - loads scikit-learn

    ratio = fit_density_ratio(old, new)
    weights = ratio.weights(mine)
    largest = max(float(weights.max()), float(ratio.weights(new).max()))
    critical = replay(policy, calibrate.played, empty).critical
    sample = Weighted(critical, weights, largest)
    mark = fingerprint(calibrate.played)
    return guarantees.weighted.certify(sample, asked.alpha, fingerprint=mark)


def _trained_points(policy: Policy, train: Part, empty: str) -> OperatingPoints:
    trained = replay(policy, train.played, empty)
    return points_of(trained, grid(trained))

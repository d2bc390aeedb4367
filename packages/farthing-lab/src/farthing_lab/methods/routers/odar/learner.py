"""Learn how hard a question is: how likely the answer so far is wrong, by what is seen so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from farthing.errors import TooFewTracesError
from farthing.features.calls import CallFeatures
from farthing.methods.base import Dataset, Fitted, Learner, Method, Progress, Variant
from farthing.methods.scorer import SIGNALS, fit_to, logistic
from farthing.process.action_space import ActionSpace, items_of, recorded_space
from farthing.process.base import State
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing_lab.features.question import HASHED
from farthing_lab.methods.routers.odar.policy import (
    MOST,
    Difficulty,
    Fusion,
    OdarPolicy,
    by_speaker,
    signals_by_speaker,
    words,
)

STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Inverse strengths of the L2 penalty that cross-validation chooses from."""
FOLDS = 5
TEXT = 4.0
"""What a question's words are multiplied by: their vector has length 1, a standardised feature
spreads by 1."""
LEAST_CHANCE = 0.02
"""The least probability that two wrong answers are taken to be the same."""


@dataclass(frozen=True)
class OdarLearner:
    """The fast line is the cheapest, the slow one that which is right most often."""

    recheck: bool = False
    """Whether difficulty is estimated anew once the check has answered (ours)."""
    weight: float = 1.0
    """lambda of the free energy (ours)."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        del alpha  # the threshold depends on it, and the difficulty does not
        if len(train) < 2:
            raise TooFewTracesError(f"{len(train)} question to train on; odar needs 2 or more")
        order = order_of_calls(train, recorded_space("calls", train))
        fusion = _fit_fusion(train, self.weight)
        steps = 2 if self.recheck else 1
        fitted = []
        for calls in range(1, steps + 1):
            state = _after(train, order, calls)
            features = CallFeatures.fit(train, np.arange(len(train)), state.known)
            wrong = ~_answered_rightly(fusion, state)
            fitted.append((features, state, wrong))
            progress.update(calls, steps, {"wrong": float(wrong.mean())})
        features = fitted[-1][0]
        found = [_fit_difficulty(features, *one[1:], seed) for one in fitted]
        again = found[1] if self.recheck else None
        return Fitted(OdarPolicy(features, order, found[0], again, fusion))


def order_of_calls(train: TraceArrays, space: ActionSpace) -> IntArray:
    """Return the line of every call, [S]: the fast line's first, up to five slow ones, the rest.

    The rest stands by how often a line is right. Where there is one line, it is both.
    """
    cost = train.cost_nano.reshape(len(train), -1)[:, space.cells].mean(axis=(0, 2, 3))
    right = train.correct.reshape(len(train), -1)[:, space.cells].mean(axis=(0, 2, 3))
    fast, slow = int(cost.argmin()), int(np.lexsort((cost, -right))[0])
    left = np.full(space.lines, space.items)
    left[fast] -= 1
    checks = min(MOST - 1, int(left[slow]))
    left[slow] -= checks
    rest = [int(line) for line in np.lexsort((cost, -right)) for _ in range(left[line])]
    return np.array([fast, *[slow] * checks, *rest], dtype=np.int64)


def _after(train: TraceArrays, order: IntArray, calls: int) -> State:
    """Return the questions after the first calls of an order, which may be all there are."""
    space = recorded_space("calls", train)
    nothing = np.zeros((len(train), 0), dtype=np.int64)
    state = State(train, space, items_of(train, space).offered, nothing)
    for line in order[:calls]:
        state = state.buying(np.full(len(train), line))
    return state


def _answered_rightly(fusion: Fusion, state: State) -> BoolArray:
    """Return whether the answer of least free energy is right, [n]."""
    energy = fusion.energy(state.recorded, state.known)
    right = state.recorded.correct.reshape(len(state), -1)
    best = energy.argmin(axis=1)
    found: BoolArray = right[np.arange(len(state)), best] & np.isfinite(energy.min(axis=1))
    return found


def _fit_fusion(train: TraceArrays, weight: float) -> Fusion:
    names = tuple(name for name in SIGNALS if name in train.signals)
    made = by_speaker(train, train.answer != NO_ANSWER)
    right = by_speaker(train, train.correct)
    scorers = fit_to(names, signals_by_speaker(train, names), made, right)
    return Fusion(scorers, _chance(train), weight)


def _chance(train: TraceArrays) -> float:
    """Return how often two wrong answers to one question are the same, by Laplace's rule."""
    code = train.answer.reshape(len(train), -1)
    wrong = (code != NO_ANSWER) & ~train.correct.reshape(len(train), -1)
    both = np.triu(wrong[:, :, None] & wrong[:, None, :], 1)
    same = both & (code[:, :, None] == code[:, None, :])
    return float(np.clip((same.sum() + 1) / (both.sum() + 2), LEAST_CHANCE, 1.0))


def _fit_difficulty(
    features: CallFeatures, state: State, wrong: BoolArray, seed: int
) -> Difficulty:
    """Fit P(the answer so far is wrong | what is seen); ungraded answers count as wrong."""
    n = len(wrong)
    seen = features.look(state.recorded, np.arange(n), state.known)
    mean, spread = seen.mean(axis=0), seen.std(axis=0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    text = words(state.recorded)
    text = np.zeros((n, 0)) if text is None else TEXT * text
    columns = np.concatenate([(seen - mean) / scale, text], axis=1)
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    losses = [
        sum(_held_out_loss(columns, wrong, fold == k, strength) for k in range(FOLDS))
        for strength in STRENGTHS
    ]
    found = logistic(columns, wrong, STRENGTHS[int(np.argmin(losses))])
    weight = np.zeros(len(mean) + HASHED + 1)
    weight[: len(mean)] = found[: len(mean)]
    weight[len(mean) : len(mean) + text.shape[1]] = TEXT * found[len(mean) : -1]
    weight[-1] = found[-1]
    return Difficulty(mean, scale, weight)


def _held_out_loss(seen: FloatArray, wrong: BoolArray, out: BoolArray, strength: float) -> float:
    if not out.any() or out.all():
        return 0.0
    found = logistic(seen[~out], wrong[~out], strength)
    logit = (seen[out] * found[:-1]).sum(axis=1) + found[-1]
    return float(np.logaddexp(0.0, np.where(wrong[out], -logit, logit)).sum())


def _card(name: str, label: str, meaning: str, learner: Learner, place: int) -> Method:
    def where_independent(dataset: Dataset) -> Sequence[Variant]:
        """Return who takes part: nobody where calls saw each other: then none can be skipped."""
        if not dataset.traces.independent.all():
            note = "calls saw earlier ones, so none can be skipped"
            return [Variant(name, label, None, note)]
        return [Variant(name, label, learner)]

    return Method(
        name=name,
        label=label,
        meaning=meaning,
        paper="2602.23681",
        policy=OdarPolicy,
        learner=learner,
        action_spaces=("calls",),
        needs=("independent calls",),
        imports=("sklearn.linear_model",),
        varies_with=frozenset({"seed"}),
        variants=where_independent,
        place=place,
    )


ODAR = _card(
    "odar",
    "ODAR",
    "How hard a question looks decides between one call, a second that checks it, and six",
    OdarLearner(),
    73,
)
ODAR_RECHECK = _card(
    "odar-recheck",
    "ODAR, looking again",
    "As odar, but how hard a question is, is estimated anew once the check has answered",
    OdarLearner(recheck=True),
    74,
)

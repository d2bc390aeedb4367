"""Answers at a price: an answer is returned only where it is likely enough to be the right one.

A set of many answers is a burden to whoever reads it. With a price on each answer, including one
must gain as much per dollar as buying a call: the same unit, the same threshold, and so the same
calibration, exact as ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from farthing.methods.base import Fitted, Method, Progress
from farthing.methods.logistic import logistic
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.process.action_space import SpaceName, arrange
from farthing.process.base import NOTHING, Budget, Decision, State
from farthing.process.play import PolicyOrder, with_next
from farthing.traces.arrays import NO_ANSWER, FloatArray, TraceArrays

ODDS = 1e-4
"""How near to 0 and 1 the score of going on is told apart."""
DEFAULT = LookaheadConfig()


@dataclass(frozen=True)
class SetSizePenaltyPolicy:
    """Buys as another policy does, and thresholds P(right) of each answer when it is bought."""

    inner: LookaheadPolicy
    weights: FloatArray
    """[F + 1] log-odds of being right, the constant last."""
    answer_nano: float
    """Price of an answer in the set, in nano-dollars; above 0."""
    stochastic: bool = False
    parameters: ClassVar[None] = None

    @property
    def space(self) -> SpaceName:
        return self.inner.space

    def decide(self, state: State) -> Decision:
        decision = self.inner.decide(state)
        if not state.turn:
            return decision
        missing = state.space.steps - state.turn
        order = np.pad(state.history, ((0, 0), (0, missing)), constant_values=NOTHING)
        laid = arrange(state.recorded, state.space, order)
        going_on = np.zeros(order.shape)
        going_on[:, state.turn - 1] = with_next(decision)[:, -1]
        answers = self._priced(laid, going_on)[:, state.turn - 1]
        return replace(decision, answers=answers)

    def followed(self, traces: TraceArrays, budget: Budget | None = None) -> PolicyOrder:
        along = self.inner.followed(traces, budget)
        answers = self._priced(along.traces, along.scores[:, :, -1])
        scores = np.concatenate([answers, along.scores[:, :, -1:]], axis=2)
        return replace(along, scores=scores)

    def _priced(self, laid: TraceArrays, going_on: FloatArray) -> FloatArray:
        """Return the scores of answers, [n, S, U], by the score of going on, [n, S]."""
        odds = evidence(laid, going_on) @ self.weights[:-1] + self.weights[-1]
        worth = self.inner.price_nano / self.answer_nano / (1.0 + np.exp(-odds))
        scores: FloatArray = worth / (1.0 + worth)
        return scores

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, settings = self.inner.to_state()
        return arrays | {"answer": self.weights}, settings | {"answer_nano": self.answer_nano}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        inner = LookaheadPolicy.from_state(arrays, settings)
        return cls(inner, arrays["answer"], float(settings["answer_nano"]))


def evidence(laid: TraceArrays, going_on: FloatArray) -> FloatArray:
    """Return what speaks for each answer when it is bought, [n, S, U, F].

    Votes for it so far, their share, whether no other answer has more, the number of distinct
    answers, how much speaks for going on, the step, and which of the purchase's answers it is.

    Args:
        laid: the questions in the order of purchases, [n, S, U].
        going_on: [n, S] the score of going on after each purchase.
    """
    n, steps, width = laid.answer.shape
    answer = laid.answer.reshape(n, -1)
    given = answer != NO_ANSWER
    step, unit = np.divmod(np.arange(steps * width), width)
    known = (step[:, None] >= step) & given[:, None, :]  # [n, mine, theirs]
    equal = (answer[:, :, None] == answer[:, None, :]) & given[:, :, None] & given[:, None, :]
    votes = (known.astype(np.float64) @ equal) * known  # for theirs, as known when mine is bought
    own = np.diagonal(votes, axis1=1, axis2=2)
    odds = np.log(np.clip(going_on, ODDS, 1.0)) - np.log(np.clip(1.0 - going_on, ODDS, 1.0))
    columns = [
        own,
        own / np.maximum(known.sum(axis=2), 1),
        own >= votes.max(axis=2),
        (known / np.maximum(votes, 1.0)).sum(axis=2),
        np.repeat(odds, width, axis=1),
        *(np.broadcast_to(step == s, own.shape) for s in range(steps)),
        *(np.broadcast_to(unit == u, own.shape) for u in range(width)),
    ]
    return np.stack(columns, axis=2).astype(np.float64).reshape(n, steps, width, -1)


@dataclass(frozen=True)
class SetSizePenaltyLearner:
    """Fits what to buy as `LookaheadLearner` does, and P(right) of each answer that is bought."""

    config: LookaheadConfig = DEFAULT
    set_size_price: float = 0.86
    """Price of an answer in the set, in mean costs of a round (lambda of the paper)."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        policy = LookaheadLearner(self.config).fit(train, alpha, seed, progress).policy
        if not isinstance(policy, LookaheadPolicy):
            raise TypeError("only a look-ahead policy can be made thrifty")
        along = policy.followed(train)
        laid, scores = along.traces, along.scores
        given = laid.answer != NO_ANSWER
        model = logistic(evidence(laid, scores[:, :, -1])[given], laid.correct[given], 1.0)
        weights = np.append(model.coef_[0], model.intercept_[0])
        price = self.set_size_price * float(train.round_cost_nano.mean())
        return Fitted(SetSizePenaltyPolicy(policy, weights, price))


LOOKAHEAD_LAMBDA = Method(
    name="lookahead-lambda",
    label="Look-ahead (λ=0.86 rounds)",
    meaning="Look-ahead that returns an answer only where it is likely enough to be right",
    policy=SetSizePenaltyPolicy,
    learner=SetSizePenaltyLearner(),
    action_spaces=("rounds", "cascade"),
    imports=("sklearn.ensemble", "sklearn.linear_model"),
    place=71,
)

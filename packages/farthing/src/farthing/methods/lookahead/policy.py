"""Buy what gains most for its money, looking ahead: the next call is chosen, then thresholded.

For each call that could be bought next, two things are estimated from what is known: the
probability that it, or what would be bought after it, makes the answers right that are not yet, and
what all of that costs. What gains most per dollar is bought next, and that gain is the score of
going on. The order of purchases does not depend on the threshold, so that sets are nested in it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from farthing.features.calls import CallFeatures
from farthing.methods.forest import Forest
from farthing.methods.lookahead.latent_difficulty import LatentDifficulty
from farthing.process.action_space import SpaceName, lines_of_sets, sets_of_next
from farthing.process.base import NOTHING, Budget, Decision, State
from farthing.process.play import PolicyOrder, follow
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

FOREST = ("feature", "threshold", "left", "value", "roots")
"""The arrays of a forest, in its order."""
LEAST = 0.02
"""No purchase is taken to cost less, in units of its mean cost."""
Judge = Callable[[IntArray, IntArray], tuple[FloatArray, FloatArray]]
"""(row [R], bought [R, F]) to gain [R, F] and cost in nano-dollars [R, F] of each line."""


@dataclass(frozen=True)
class GainEstimate:
    """What each set of next items, and what follows it, would gain and cost, waiting included.

    One forest for all sets. With one line only, mixed with a linear model: the one sees what
    depends on what, the other needs little data. With several, states differ too much for that.
    The linear model looks at what a model of the conversation expects, where there is one, or else
    at what the forest looks at.
    """

    forest: Forest
    """2 A outputs: gain of each set in [0, 1], then cost of each in units of `unit_nano`."""
    gain_weights: FloatArray
    """[K, G + 1] log-odds of the gain after k purchases, the constant last; no row: forest only."""
    cost_weights: FloatArray
    """[K, G + 1] cost in units of `unit_nano`, likewise."""
    unit_nano: FloatArray
    """[A] mean cost of a set in training, in nano-dollars."""
    share: float
    """Of the forest in the mixture; 1 where there is no linear model."""

    def predict(
        self, features: FloatArray, outlook: FloatArray, step: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return gain and cost in nano-dollars, [R, A] each.

        Args:
            features: [R, C] what the forest looks at.
            outlook: [R, G] what the linear model looks at.
            step: [R] number of purchases that were made.
        """
        gain, cost = np.split(self.forest.predict(features), 2, axis=1)
        if self.share < 1:
            spent = np.maximum(linear(self.cost_weights, outlook, step), 0.0)[:, None]
            gain = self.share * gain + (1 - self.share) * self._odds(outlook, step)
            cost = self.share * cost + (1 - self.share) * spent
        return gain, np.maximum(cost, LEAST) * self.unit_nano

    def gains(self, features: FloatArray, outlook: FloatArray, step: IntArray) -> FloatArray:
        """Return the gain of the one line by forest and by linear model, [R, 2]."""
        forest = self.forest.predict(features)[:, :1]
        return np.concatenate([forest, self._odds(outlook, step)], axis=1)

    def _odds(self, outlook: FloatArray, step: IntArray) -> FloatArray:
        odds = linear(self.gain_weights, outlook, step)[:, None]
        gain: FloatArray = 1.0 / (1.0 + np.exp(np.minimum(-odds, 700.0)))
        return gain


def linear(weights: FloatArray, features: FloatArray, step: IntArray) -> FloatArray:
    """Return the weighted sums of features [R, F] under the weights of each case's step, [R]."""
    own = weights[step]
    total: FloatArray = (features * own[:, :-1]).sum(axis=1) + own[:, -1]
    return total


@dataclass(frozen=True)
class LookaheadPolicy:
    """Follows an estimate of what every line of its protocol gains and costs."""

    space: SpaceName
    """The action space that it buys in."""
    features: CallFeatures
    estimate: GainEstimate
    price_nano: float
    """What a covered question is worth at the coverage that training aimed at, in nano-dollars."""
    latent: LatentDifficulty | None = None
    """A model of the conversation, where a base and a guide talk in rounds."""
    together: int = 1
    """The most items that one decision buys."""
    stochastic: bool = False
    parameters: ClassVar[None] = None

    def decide(self, state: State) -> Decision:
        """Buy what gains most per dollar next; every answer that was bought is returned.

        Going on scores w / (1 + w) for a worth of w prices of coverage.
        """
        # after each round it depends on that round and those before it
        return self._decide(state, outlooks(self.latent, state.recorded))

    def followed(self, traces: TraceArrays, budget: Budget | None = None) -> PolicyOrder:
        """Follow its order through many questions; the conversations are weighed once."""
        outlook = outlooks(self.latent, traces)
        return follow(self, traces, budget, lambda state: self._decide(state, outlook))

    def _decide(self, state: State, outlook: FloatArray | None) -> Decision:
        """Decide by what a model of the conversation expects after each round, [n, T + 1, 2]."""
        n, width = len(state), state.space.width
        sets = sets_of_next(state.space.lines, state.space.items, self.together)
        can = state.can_buy_sets(sets)
        if not can.any():
            nothing = np.full((n, int(sets.sum(axis=1).max())), NOTHING)
            return Decision(nothing[:, 0], np.zeros(n), np.ones((n, width)), also=nothing[:, 1:])
        seen = self.features.look(state.recorded, np.arange(n), state.known)
        # one that ended earlier has bought fewer; one that bought everything is not asked
        step = np.minimum(state.bought.sum(axis=1), state.space.steps - 1)
        linear_features = seen if outlook is None else outlook[np.arange(n), step]
        told = self.estimate.predict(seen, linear_features, step)
        line, worth = best_purchase(*told, can, sets, self.price_nano)
        worth = np.maximum(worth * self.price_nano, 0.0)
        return Decision(line[:, 0], worth / (1.0 + worth), np.ones((n, width)), also=line[:, 1:])

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the settings that a bundle keeps."""
        arrays: dict[str, NDArray[Any]] = {
            "gain": self.estimate.gain_weights,
            "cost": self.estimate.cost_weights,
            "unit_nano": self.estimate.unit_nano,
        }
        arrays |= {name: getattr(self.estimate.forest, name) for name in FOREST}
        latent = None
        if self.latent is not None:
            found, latent = self.latent.to_state()
            arrays |= found
        return arrays, {
            "space": self.space,
            "features": msgspec.to_builtins(self.features),
            "price_nano": self.price_nano,
            "depth": self.estimate.forest.depth,
            "share": self.estimate.share,
            "latent": latent,
            "together": self.together,
        }

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        forest = Forest(depth=int(settings["depth"]), **{name: arrays[name] for name in FOREST})
        weights = arrays["gain"], arrays["cost"], arrays["unit_nano"]
        estimate = GainEstimate(forest, *weights, float(settings["share"]))
        features = msgspec.convert(settings["features"], CallFeatures)
        latent = settings["latent"] and LatentDifficulty.from_state(arrays, settings["latent"])
        price, together = float(settings["price_nano"]), int(settings.get("together", 1))
        return cls(settings["space"], features, estimate, price, latent, together)


def outlooks(latent: LatentDifficulty | None, traces: TraceArrays) -> FloatArray | None:
    """Return what a model of the conversation expects before each round, [n, T + 1, 2].

    Before the first it is zeros; without a model it is nothing at all.
    """
    if latent is None:
        return None
    found = latent.outlook(traces)
    return np.concatenate([np.zeros_like(found[:, :1]), found], axis=1)


def best_line(gain: FloatArray, cost: FloatArray, can: BoolArray) -> tuple[IntArray, FloatArray]:
    """Return the line of greatest gain per nano-dollar, [R], and that gain, [R].

    Where nothing can be bought it is -1, worth -inf.
    """
    worth = np.where(can, gain / cost, -np.inf)
    line = worth.argmax(axis=1)
    best = worth[np.arange(len(line)), line]
    return np.where(can.any(axis=1), line, -1), best


def best_purchase(
    gain: FloatArray, cost: FloatArray, can: BoolArray, sets: IntArray, price_nano: float
) -> tuple[IntArray, FloatArray]:
    """Return the lines to buy from next, [R, J], padded with -1, and their gain per nano-dollar.

    The line of the greatest gain per nano-dollar leads. Of the sets with its next item the one is
    bought whose gain, at a price of coverage, exceeds its cost by most. Where nothing can be bought
    there is no line, worth -inf.

    Args:
        gain: [R, A] of each set.
        cost: [R, A] of each set, in nano-dollars.
        can: [R, A] which sets can be bought.
        sets: [A, F] how many next items of each line a set holds, single items first.
        price_nano: what a covered question is worth, in nano-dollars.
    """
    single = np.s_[:, : sets.shape[1]]
    lead, worth = best_line(gain[single], cost[single], can[single])
    exceeds = np.where(can & (sets[:, lead] > 0).T, price_nano * gain - cost, -np.inf)
    chosen = np.where(lead == NOTHING, NOTHING, exceeds.argmax(axis=1))
    line = lines_of_sets(sets)[chosen]
    first = np.argsort(line != lead[:, None], axis=1, kind="stable")
    each = np.arange(len(chosen)), chosen
    worth = np.where(lead == NOTHING, worth, gain[each] / cost[each])
    return np.take_along_axis(line, first, axis=1), worth


@dataclass(frozen=True)
class Order:
    """In which order to buy for each question, and how much each purchase is worth."""

    line: IntArray
    """[n, S] the line of each purchase; -1 once nothing is on offer."""
    worth: FloatArray
    """[n, S] gain per dollar of a purchase and what follows it; infinite for the first."""


def ordered(on_offer: BoolArray, judge: Judge) -> Order:
    """Choose purchases one after another, as if every one of them were made.

    Args:
        on_offer: [n, F, K] the items that can be bought.
        judge: what the lines of a case are estimated to gain and cost.
    """
    n, lines, items = on_offer.shape
    every = np.arange(n)
    bought = np.zeros((n, lines), dtype=np.int64)
    line = np.full((n, lines * items), -1)
    worth = np.full((n, lines * items), -np.inf)
    for step in range(lines * items):
        can = offered(on_offer, every, bought)
        line[:, step], worth[:, step] = best_line(*judge(every, bought), can)
        made = line[:, step] >= 0
        bought[every[made], line[made, step]] += 1
    worth[:, 0] = np.inf
    return Order(line, worth)


def offered(on_offer: BoolArray, row: IntArray, bought: IntArray) -> BoolArray:
    """Return from which lines something can still be bought, [R, F].

    Args:
        on_offer: [n, F, K] the items that can be bought.
        row: [R] which question each case is about.
        bought: [R, F] how many items of each line it has.
    """
    items = on_offer.shape[2]
    place = np.minimum(bought, items - 1)[:, :, None]
    can: BoolArray = np.take_along_axis(on_offer[row], place, axis=2)[..., 0] & (bought < items)
    return can

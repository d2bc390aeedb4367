"""One answer and how sure it is: goes on as another policy does until an answer is sure enough.

A policy that scores every answer alike cannot tell which to give and which to hold back. Here each
answer of the latest purchase scores how sure it is, from all that was paid for so far
(`confidence.py`), and the surest is returned where going on ends. A threshold then does one thing:
it withholds answers that are less sure. So the scores hold for sets that may be empty alone.

In place of the other policy, a row of calls, the same for every question, may say what is bought.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from farthing.methods import cards
from farthing.methods.selective.confidence import Sureness, restored, saved
from farthing.methods.serialization import under
from farthing.process.action_space import SpaceName
from farthing.process.base import NOTHING, Budget, Decision, Policy, State
from farthing.process.batch_replay import Priced, followed
from farthing.process.play import PolicyOrder, with_next
from farthing.process.replay import likeliest_counts_as_one, paths
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

AS_TRAINED = "the policy as trained"
"""How certificates call candidates that are the trained policy itself."""


@dataclass(frozen=True)
class FixedRow:
    """Buys the next item of each line of a row, one after the other, and then nothing more.

    An item that cannot be bought, since it was not recorded or is too dear, is left out. What is
    not in the row comes last, with a score of 0 for going on, so that the order is complete.
    """

    space: SpaceName
    lines: tuple[int, ...]
    """The lines to buy from; one that occurs k times gives its first k items."""
    stochastic: ClassVar[bool] = False
    parameters: ClassVar[None] = None

    def decide(self, state: State) -> Decision:
        """Go on while an item of the row can be bought; no answer scores."""
        n = len(state)
        rest = np.where(state.can_buy.any(axis=1), state.can_buy.argmax(axis=1), NOTHING)
        wanted = np.full(n, NOTHING)
        for place, line in reversed(list(enumerate(self.lines))):
            by_then = self.lines[: place + 1].count(line)
            here = state.can_buy[:, line] & (state.bought[:, line] < by_then)
            wanted[here] = line
        goes_on = (wanted != NOTHING).astype(np.float64)
        silent = np.zeros((n, state.space.width))
        return Decision(np.where(goes_on > 0, wanted, rest), goes_on, silent)


def cheapest_first(cost_nano: IntArray) -> list[int]:
    """Return the places of calls by their mean cost, those of equal cost in their order.

    >>> cheapest_first(np.array([[30, 10, 20], [30, 10, 20]]))
    [1, 2, 0]
    """
    return [int(place) for place in np.argsort(cost_nano.mean(axis=0), kind="stable")]


@dataclass(frozen=True)
class Walk:
    """How another policy plays some questions, if it goes on for ever."""

    along: PolicyOrder
    reach: FloatArray
    """[n, S] the largest threshold at which it makes each purchase."""
    known: BoolArray
    """[n, S, T * L] which calls are known after each purchase."""

    def sure(self, sureness: Sureness, traces: TraceArrays) -> FloatArray:
        """Return how sure each answer is after the purchase that brought it, [n, S, U]."""
        return sureness(traces, self.known, self.along.calls, self.along.traces.answer)


def walk(policy: Policy, traces: TraceArrays, empty: str, budget: Budget | None = None) -> Walk:
    """Play a policy's every purchase.

    Args:
        policy: any policy that acts through a threshold.
        traces: the questions, [n, T, L].
        empty: the mode of `replay.paths` that it was trained for.
        budget: what each question may cost.
    """
    along = followed(policy, traces, budget)
    bought = None if budget is None else along.bought
    reach = paths(along.scores, along.traces, empty, bought).reach
    return Walk(along, reach, along.known(traces.horizon * traces.n_roles))


@dataclass(frozen=True)
class SelectivePolicy:
    """Buys as another policy does at one threshold, or a row, until an answer is sure enough."""

    inner: Policy
    """The policy that was trained; it buys where there is no row."""
    empty: str
    """The mode of `replay.paths` that it was trained for."""
    until: float
    """Its threshold."""
    enough: float
    """How sure an answer must be for no more to be bought."""
    confidence: Sureness
    row: FixedRow | None = None
    """Whom it asks in place of what the policy would buy; None: as the policy."""
    stochastic: bool = False
    parameters: ClassVar[None] = None

    @property
    def space(self) -> SpaceName:
        """The action space that it buys in."""
        return self.buyer.space

    @property
    def buyer(self) -> Policy:
        """Who says what is bought next."""
        return self.row or self.inner

    @property
    def mode(self) -> str:
        """The mode of `replay.paths` that its scores hold in."""
        return "allow" if self.row else self.empty

    def walk(self, traces: TraceArrays, budget: Budget | None = None) -> Walk:
        """Play every purchase that it could make."""
        return walk(self.buyer, traces, self.mode, budget)

    def decide(self, state: State) -> Decision:
        """Go on as the buyer would, unless an answer is sure enough already."""
        theirs = self.buyer.decide(state)
        if not state.turn:
            return theirs
        answer = np.take_along_axis(state.recorded.answer.reshape(len(state), -1), state.latest, 1)
        sure = self.confidence(
            state.recorded, state.known[:, None], state.latest[:, None], answer[:, None]
        )[:, 0]
        best = sure.max(axis=1)
        goes_on = (_onwards(with_next(theirs), self.mode) >= self.until) & (best < self.enough)
        return Decision(theirs.line, goes_on.astype(np.float64), _returned(sure, goes_on))

    def followed(self, traces: TraceArrays, budget: Budget | None = None) -> PolicyOrder:
        """Follow the buyer's order, and weigh the answers of all questions at once."""
        walked = self.walk(traces, budget)
        sure = walked.sure(self.confidence, traces)
        theirs = walked.along.scores.copy()
        theirs[:, :-1, -1][~walked.along.bought[:, 1:]] = -1.0
        theirs[:, -1, -1] = -1.0
        goes_on = (_onwards(theirs, self.mode) >= self.until) & (sure.max(axis=2) < self.enough)
        possible = np.where(theirs[:, :, -1] < 0, -1.0, goes_on)
        scores = np.concatenate([_returned(sure, goes_on), possible[:, :, None]], axis=2)
        return replace(walked.along, scores=scores)

    def calls_made(self, traces: TraceArrays, budget: Budget | None = None) -> BoolArray:
        """Return which calls are made before it ends, [n, T * L]: the same at every threshold."""
        ended = walk(self, traces, "allow", budget)
        last = (ended.reach >= 1.0).sum(axis=1) - 1
        made: BoolArray = ended.known[np.arange(len(traces)), np.maximum(last, 0)]
        made[last < 0] = False
        return made

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray | None:
        """Return what deciding costs the buyer, [n, S] in nano-dollars; None: it asks no model."""
        return self.buyer.decision_cost_nano(traces) if isinstance(self.buyer, Priced) else None

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the settings that a bundle keeps."""
        arrays, settings = self.inner.to_state()  # type: ignore[attr-defined]
        own, sure = saved(self.confidence)
        inner = {f"inner.{name}": values for name, values in arrays.items()}
        return own | inner, {
            "inner": {"kind": cards.name_of(self.inner), "settings": settings},
            "features": settings.get("features"),
            "empty": self.empty,
            "until": self.until,
            "enough": self.enough,
            "sure": sure,
            "row": self.row and {"space": self.row.space, "lines": list(self.row.lines)},
        }

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        if "sure" not in settings:
            raise ValueError("an older Farthing saved it; train and calibrate again")
        of, row = settings["inner"], settings["row"]
        return cls(
            cards.policy_class(of["kind"]).from_state(under("inner.", arrays), of["settings"]),
            settings["empty"],
            float(settings["until"]),
            float(settings["enough"]),
            restored(arrays, settings["sure"]),
            row and FixedRow(row["space"], tuple(row["lines"])),
        )


def _onwards(scores: FloatArray, empty: str) -> FloatArray:
    """Return the largest threshold at which going on is among the actions taken, [...]."""
    found: FloatArray = likeliest_counts_as_one(scores) if empty == "argmax" else scores
    return found[..., -1]


def _returned(sure: FloatArray, goes_on: BoolArray) -> FloatArray:
    """Return the score of each answer, [..., U]: of the likeliest alone, where it ends."""
    likeliest = sure.argmax(axis=-1)[..., None] == np.arange(sure.shape[-1])
    scores: FloatArray = np.where(likeliest & ~goes_on[..., None], sure, 0.0)
    return scores


def as_trained(policy: Policy, empty: str) -> tuple[Policy, str]:
    """Return a policy as it was before it was made to say how sure it is, and its mode."""
    if isinstance(policy, SelectivePolicy):
        return policy.inner, policy.empty
    return policy, empty

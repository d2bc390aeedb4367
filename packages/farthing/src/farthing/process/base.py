"""The decision process: what is known of a question, what may be decided, and what it leads to.

A question is answered in *turns*: in each turn the next item of one *line* of the action space is
bought (a round, or a single call), and then the policy decides: which of the new answers join the
set, and what is bought next. The same code runs over recordings, over live models and in a
simulator, for one question or for many at the same turn.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol, final, runtime_checkable

import numpy as np

from farthing.process.action_space import ActionSpace, SpaceName
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.pool import spent_nano
from farthing.traces.text_signals import OF_QUESTION

NOTHING = -1
"""The line of a decision that buys nothing more."""


@dataclass(frozen=True)
class Budget:
    """What a question may cost, and the most that each of its calls can cost."""

    nano: int
    """Nano-dollars a question."""
    largest_nano: IntArray
    """[n, T * L] the most that each call can cost: known before it is made, unlike its price."""
    asking_nano: IntArray | None = None
    """[n, T] what asking an LLM what to do cost after each round; None where nobody is asked."""
    largest_asking_nano: int = 0
    """The most that asking it once can cost."""

    def take(self, index: IntArray) -> "Budget":
        """Return the same for the questions at an index."""
        asking = None if self.asking_nano is None else self.asking_nano[index]
        return replace(self, largest_nano=self.largest_nano[index], asking_nano=asking)


@dataclass(frozen=True)
class State:
    """What is known of n questions after the same number of turns; live there is one."""

    recorded: TraceArrays
    """[n, T, L] the questions. In a replay calls that were not made yet are in it as well, so a
    policy reads `seen`, or `recorded` where `known` says that a call was made."""
    space: ActionSpace
    """Who may be asked, in what order."""
    offered: BoolArray
    """[n, F, K] the items that can be bought at all: that were recorded, or live all of them."""
    history: IntArray
    """[n, turn] the line that each purchase was made in."""
    budget: Budget | None = None
    """What a question may cost; None: no limit."""
    parameter: float = 0.0
    """The operating point that is asked for, in [0, 1]; policies with `parameters` read it."""
    mode: str = ""
    """The mode that a controller is told: `low`, `medium`, `high`; empty for none."""

    def __len__(self) -> int:
        return len(self.history)

    @property
    def turn(self) -> int:
        """The number of purchases that were made."""
        return int(self.history.shape[1])

    @cached_property
    def bought(self) -> IntArray:
        """[n, F] how many items of each line were bought."""
        bought: IntArray = (self.history[:, :, None] == np.arange(self.space.lines)).sum(axis=1)
        return bought

    @cached_property
    def known(self) -> BoolArray:
        """[n, T * L] which calls were made."""
        return self.space.known(self.bought)

    @cached_property
    def seen(self) -> TraceArrays:
        """The questions with nothing in them but the calls that were made, without their grades."""
        return hidden(self.recorded, self.known)

    @cached_property
    def spent_nano(self) -> IntArray:
        """[n] what the calls that were made cost, in nano-dollars."""
        return spent_nano(self.recorded, self.known)

    @property
    def left_nano(self) -> IntArray | None:
        """[n] what is left of the budget, in nano-dollars; None where there is no limit."""
        if self.budget is None:
            return None
        left: IntArray = self.budget.nano - self.spent_nano
        if self.budget.asking_nano is None:
            return left
        rounds = self.known.reshape(self.recorded.answer.shape).any(axis=2)
        asked: IntArray = np.where(rounds, self.budget.asking_nano, 0).sum(axis=1)
        return left - asked

    @cached_property
    def can_buy(self) -> BoolArray:
        """[n, F] the lines whose next item is on offer and cannot cost more than what is left."""
        return self.can_buy_sets(np.eye(self.space.lines, dtype=np.int64))

    def can_buy_sets(self, sets: IntArray) -> BoolArray:
        """Return which sets of next items are on offer and cannot cost more than what is left.

        Args:
            sets: [A, F] how many items of each line a set holds.

        Returns:
            [n, A]
        """
        after = self.bought[:, None] + sets
        can: BoolArray = (after <= self.offered.sum(axis=2)[:, None]).all(axis=2)
        left = self.left_nano
        if self.budget is None or left is None:
            return can
        largest = self.budget.largest_nano[:, self.space.cells].sum(axis=3).cumsum(axis=2)
        upto = np.pad(largest, ((0, 0), (0, 0), (1, 0)))[:, None]
        most = self.space.items
        ends = [np.minimum(end, most)[..., None] for end in (after, self.bought[:, None])]
        whole, before = (np.take_along_axis(upto, end, axis=3).sum(axis=(2, 3)) for end in ends)
        affordable: BoolArray = whole - before + self.budget.largest_asking_nano <= left[:, None]
        return can & affordable

    @cached_property
    def latest(self) -> IntArray:
        """[n, U] the calls of the latest purchase; only after the first."""
        line = self.history[:, -1]
        item = np.take_along_axis(self.bought, line[:, None], axis=1)[:, 0] - 1
        return self.space.cells[line, item]

    def buying(self, line: IntArray) -> "State":
        """Return the state after buying the next item of a line each, [n]."""
        return replace(self, history=np.concatenate([self.history, line[:, None]], axis=1))


def hidden(recorded: TraceArrays, known: BoolArray) -> TraceArrays:
    """Return questions with nothing in them but the known calls, [n, T * L], and no grade.

    What is known of the question itself stays.
    """
    made = known.reshape(recorded.answer.shape)
    rounds = made.any(axis=2)
    return replace(
        recorded,
        answer=np.where(made, recorded.answer, np.int16(NO_ANSWER)),
        correct=np.zeros_like(recorded.correct),
        cost_nano=np.where(made, recorded.cost_nano, 0),
        made=made & recorded.made,
        signals={
            name: values if name in OF_QUESTION else np.where(made, values, np.float32(np.nan))
            for name, values in recorded.signals.items()
        },
        replies={
            role: replace(
                reply,
                action=np.where(rounds, reply.action, np.int8(-1)),
                cost_nano=np.where(rounds, reply.cost_nano, 0),
            )
            for role, reply in recorded.replies.items()
        },
    )


@dataclass(frozen=True)
class Decision:
    """What a policy makes of n states: scores, which a threshold turns into actions."""

    line: IntArray
    """[n] the line to buy the next item of, if it goes on; `NOTHING` where none can be bought."""
    go_on: FloatArray
    """[n] score of going on, in [0, 1]; a policy that only knows yes and no scores 1 and 0."""
    answers: FloatArray
    """[n, U] score of returning each answer of the latest purchase, in [0, 1]."""
    single: IntArray | None = None
    """[n] the call, t * L + l, whose answer is the single one if this ends it, -1 for none; None:
    the one of the set that scored highest, of equals the latest."""
    also: IntArray | None = None
    """[n, J - 1] further lines, whose next items are bought at the same time, before any reply is
    seen, and under the same score; `NOTHING` for none; None: one item is bought at a time."""

    @property
    def pending(self) -> BoolArray:
        """[n] whether a further purchase was decided together with that of `line`."""
        also = np.zeros((len(self.line), 0)) if self.also is None else self.also
        found: BoolArray = (also[:, :1] != NOTHING).any(axis=1)
        return found


@runtime_checkable
class Policy(Protocol):
    """Decides, for any number of questions at the same turn."""

    @property
    def space(self) -> SpaceName:
        """The action space that it buys in."""
        ...

    @property
    def parameters(self) -> FloatArray | None:
        """[G] its operating points as numbers in (0, 1], from the cheapest, 1, falling.

        None: its decisions are the same at all of them, and any threshold in [0, 1] turns their
        scores into actions. The sets are nested then, which makes its calibration exact.
        """
        ...

    @property
    def stochastic(self) -> bool:
        """Whether the scores of a decision are probabilities that one action can be drawn from."""
        ...

    def decide(self, state: State) -> Decision:
        """Decide after a turn, from what is known; before the first one only `line` is read."""
        ...


class InRounds(ABC):
    """A policy that buys whole rounds, and scores all of many questions at once."""

    space: ClassVar[SpaceName] = "rounds"
    parameters: ClassVar[None] = None

    @property
    @abstractmethod
    def stochastic(self) -> bool:
        """Whether the scores of a round are probabilities."""

    @abstractmethod
    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return the scores, [n, T, L + 1]: of each role's answer and, last, of going on.

        Those of round t depend on rounds 1..t only.
        """

    @final
    def decide(self, state: State) -> Decision:
        """Decide after a round."""
        line = np.where(state.can_buy[:, 0], 0, NOTHING)
        now = self.scores(state.seen)[:, max(state.turn - 1, 0)]
        return Decision(line, now[:, -1], now[:, :-1])

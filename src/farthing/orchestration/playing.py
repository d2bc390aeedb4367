"""One question as a policy plays it: which step comes next, and what is returned if none does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
from msgspec import structs

from farthing.environments.protocols import laid_out
from farthing.orchestration.answer import Returned
from farthing.orchestration.course import Lines, Step
from farthing.orchestration.decision import (
    AS_IT_IS,
    Decision,
    Steps,
    decide,
    distinct,
    draw,
    threshold,
)
from farthing.orchestration.observation import Notes, noted, notes_of, observed
from farthing.policies.bundle import Bundle
from farthing.policies.decide import Choice, Decider
from farthing.policies.lookahead import LookaheadPolicy
from farthing.tasks.base import Task
from farthing.traces.arrays import NO_ANSWER
from farthing.traces.base import Call, Trace

ROUNDING = 1e-12
"""Relative error of a worth in plain Python against the arrays' that set the threshold. Going on
within it covers more, never less."""


class Play(Protocol):
    """One question under way."""

    def next(self) -> Step | None:
        """Return the step that the policy wants; None where it has done."""
        ...

    def decide(self, steps: Steps) -> Decision:
        """Decide after a step.

        Args:
            steps: the calls of every step so far.
        """
        ...


Begin = Callable[[Trace, np.random.Generator], Play]
"""Begins a question, a trace without calls; the generator is for a policy that draws."""


def player(bundle: Bundle, lines: Lines, task: Task) -> Begin:
    """Return how questions are begun under a bundle; what all of them share is worked out once.

    A look-ahead policy decides in plain Python, every other one by the arrays of a replay.
    """
    policy = bundle.policy
    if not isinstance(policy, LookaheadPolicy):
        return lambda question, rng: InRounds(
            bundle, lines[0], question, threshold(bundle, question.group), rng
        )
    decider, rows, columns = Decider(policy), policy.features.horizon, len(policy.features.roles)
    cells = laid_out(policy.rules, rows, columns).cells.tolist()

    def begin(question: Trace, rng: np.random.Generator) -> Play:  # noqa: ARG001 - a `Begin`
        kappa = threshold(bundle, question.group)
        notes = notes_of(question.question, bundle.origin, task.normalise)
        return ByWorth(decider, lines, cells, notes, AS_IT_IS if kappa is None else kappa)

    return begin


@dataclass
class InRounds:
    """Rounds in their order; the policy scores all of a question's rounds each time."""

    bundle: Bundle
    rounds: Sequence[Step]
    question: Trace
    """Without calls."""
    kappa: float | None
    """None: actions are drawn."""
    rng: np.random.Generator
    _done: int = 0
    _go_on: bool = True

    def next(self) -> Step | None:
        """Return the next round."""
        return self.rounds[self._done] if self._go_on and self._done < len(self.rounds) else None

    def decide(self, steps: Steps) -> Decision:
        """Decide after a round."""
        trace = structs.replace(self.question, calls=list(chain.from_iterable(steps)))
        seen = observed(trace, self.bundle.origin)
        if self.kappa is None:
            found = draw(self.bundle, seen, steps, float(self.rng.random()))
        else:
            found = decide(self.bundle, seen, steps, self.kappa)
        self._done, self._go_on = len(steps), found.go_on
        return found


@dataclass
class ByWorth:
    """Whatever a look-ahead policy buys next, one small decision at a time.

    Every answer that was bought is returned, as its policy scores each of them 1.
    """

    decider: Decider
    lines: Lines
    cells: Sequence[Sequence[Sequence[int]]]
    """Of each step of each line, the places of its calls."""
    notes: Notes
    kappa: float
    _bought: list[int] = field(default_factory=list)
    _at: list[int] = field(default_factory=list)
    _choice: Choice = field(init=False)

    def __post_init__(self) -> None:
        """Choose the first step by what the question itself tells."""
        self._bought = [0] * len(self.lines)
        self._choice = self.decider.decide(self._bought, *noted(self.notes, [], []))

    def next(self) -> Step | None:
        """Return the step of the greatest worth, if it is worth enough."""
        line, score = self._choice
        kappa = min(self.kappa, 1.0)
        if line < 0 or score < kappa - ROUNDING * kappa * (1.0 - kappa):  # of w / (1 + w)
            return None
        return self.lines[line][self._bought[line]]

    def decide(self, steps: Steps) -> Decision:
        """Decide after the step that `next` returned."""
        line = self._choice.line
        self._at += self.cells[line][self._bought[line]]
        self._bought[line] += 1
        calls = list(chain.from_iterable(steps))
        answers, signals = noted(self.notes, self._at, calls)
        self._choice = self.decider.decide(self._bought, answers, signals)
        given = [
            pair for pair in zip(self._at, calls, strict=True) if answers[pair[0]] != NO_ANSWER
        ]
        ranked = [(answers[at], self._returned(at, call)) for at, call in reversed(given)]
        best = ranked[0][1] if ranked else None
        return Decision(self.next() is not None, distinct(ranked), best)

    def _returned(self, at: int, call: Call) -> Returned:
        return Returned(call.answer or "", 1.0, at // len(self.notes.roles) + 1, call.role)

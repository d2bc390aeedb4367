"""One question as a policy plays it: which step comes next, and what is returned if none does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

import numpy as np
from msgspec import structs

from farthing.bundle import Bundle
from farthing.methods.lookahead.decide import Choice, Decider
from farthing.methods.lookahead.policy import LookaheadPolicy, buying
from farthing.process.action_space import laid_out
from farthing.runtime.decision import (
    AS_IT_IS,
    Decision,
    Steps,
    decide,
    distinct,
    draw,
    returned,
    threshold,
)
from farthing.runtime.observation import Notes, noted, notes_of, observed, on_offer
from farthing.runtime.steps import Lines, Step, by_call
from farthing.tasks.base import Task
from farthing.traces.arrays import NO_ANSWER
from farthing.traces.base import Trace

ROUNDING = 1e-9
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

    What a look-ahead policy buys is decided in plain Python, all else by the arrays of a replay.
    """
    policy = bundle.policy
    plain = isinstance(policy, LookaheadPolicy)
    buyer = buying(policy) if plain or by_call(policy) else None
    scored = policy if isinstance(policy, Arranging) and not plain else None
    if buyer is None:
        return lambda question, rng: InRounds(
            bundle, lines[0], question, threshold(bundle, question.group), rng
        )
    decider, features = Decider(buyer), buyer.features
    cells = laid_out(buyer.rules, features.horizon, len(features.roles)).cells.tolist()

    def begin(question: Trace, rng: np.random.Generator) -> Play:  # noqa: ARG001 - a `Begin`
        kappa = threshold(bundle, question.group)
        notes = notes_of(question.question, bundle.origin, task.normalise)
        kappa = AS_IT_IS if kappa is None else kappa
        return ByWorth(decider, lines, cells, notes, bundle, scored, kappa)

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
            scores = self.bundle.policy.scores(seen)
            found = decide(scores, seen, steps, self.bundle, self.kappa)
        self._done, self._go_on = len(steps), found.go_on
        return found


@dataclass
class ByWorth:
    """Whatever a look-ahead policy buys next, one small decision at a time.

    Every answer that was bought is returned, as that policy scores each of them 1, unless another
    one, around it, has scores of its own.
    """

    decider: Decider
    lines: Lines
    cells: Sequence[Sequence[Sequence[int]]]
    """Of each step of each line, the places of its calls."""
    notes: Notes
    bundle: Bundle
    scored: Arranging | None
    """The policy around it, if any."""
    kappa: float
    _bought: list[int] = field(init=False)
    _at: list[int] = field(default_factory=list)
    _choice: Choice = field(init=False)
    _go_on: bool = True

    def __post_init__(self) -> None:
        """Choose the first step by what the question itself tells."""
        self._bought = [0] * len(self.lines)
        self._choice = self.decider.decide(self._bought, *noted(self.notes, [], []))

    def next(self) -> Step | None:
        """Return the step of the greatest worth, if the policy goes on."""
        line = self._choice.line
        return self.lines[line][self._bought[line]] if self._go_on and line >= 0 else None

    def decide(self, steps: Steps) -> Decision:
        """Decide after the step that `next` returned."""
        line = self._choice.line
        self._at += self.cells[line][self._bought[line]]
        self._bought[line] += 1
        calls = list(chain.from_iterable(steps))
        answers, signals = noted(self.notes, self._at, calls)
        self._choice = self.decider.decide(self._bought, answers, signals)
        found = self._decision(steps, answers, signals)
        self._go_on = found.go_on
        return found

    def _decision(
        self, steps: Steps, answers: list[int], signals: Mapping[str, list[float]]
    ) -> Decision:
        if self.scored is not None:
            laid, scores = self.scored.arranged(on_offer(self.notes, answers, signals))
            return decide(scores, laid, steps, self.bundle, self.kappa)
        heard = [returned(call, 1.0, t) for t, calls in enumerate(steps) for call in calls]
        given = [(answers[at], of) for at, of in zip(self._at, heard, strict=True)]
        given = [(code, of) for code, of in given if code != NO_ANSWER]
        kappa = min(self.kappa, 1.0)
        slack = ROUNDING * kappa * (1.0 - kappa)  # of w / (1 + w) at a worth w
        go_on = self._choice.line >= 0 and self._choice.score >= kappa - slack
        return Decision(go_on, distinct(reversed(given)), given[-1][1] if given else None)

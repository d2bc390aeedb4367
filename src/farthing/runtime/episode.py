"""One live question under a policy: what is bought next, and what is returned if nothing is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from farthing.bundle.base import Bundle
from farthing.methods.baselines.llm_replies import replies_of
from farthing.process.action_space import ActionSpace, action_space
from farthing.process.base import NOTHING, Budget, Decision, State
from farthing.process.play import Action, all_actions, sample_actions, threshold_actions
from farthing.promises.kinds.groups import groups_of
from farthing.runtime.answer import Returned
from farthing.runtime.observation import Observer
from farthing.runtime.steps import Lines, Step
from farthing.tasks.base import Task, is_answer
from farthing.traces.arrays import TraceArrays
from farthing.traces.base import Call, Trace
from farthing.traces.trace_kind import PROTOCOL_ROLES, is_reply

AS_IT_IS = 1.0
"""The threshold of a policy that is neither sampled nor calibrated: what it scores 1 is done."""

Steps = Sequence[Sequence[Call]]
"""The calls of each step that was made in full."""
Bounds = Mapping[int, int]
"""Of each line, the most that its next item can cost, in nano-dollars."""


@dataclass(frozen=True)
class Heard:
    """One answer, and what the policy made of it when it came."""

    call: Call
    place: int
    """t * L + l for round t and role l."""
    step: int
    """From 0."""
    score: float
    joins: bool
    """Whether it is in the set."""

    def returned(self) -> Returned:
        """Return it as one answer of a set."""
        number = self.call.round if self.call.role in PROTOCOL_ROLES else self.step + 1
        return Returned(self.call.answer or "", self.score, number, self.call.role)


@dataclass
class Episode:
    """Plays one question as `process.play` plays a recorded one, with calls as they are made."""

    bundle: Bundle
    lines: Lines
    question: Trace
    """Without calls."""
    task: Task
    rng: np.random.Generator
    """Draws the actions of a policy without a threshold."""
    budget_nano: int | None = None
    """What the question may cost, in nano-dollars."""
    cut: bool = False
    """Whether the budget ended it where the policy would have gone on."""
    departed: bool = False
    """Whether the budget changed what was bought or returned, at any turn."""
    heard: list[Heard] = field(default_factory=list)
    _history: list[int] = field(default_factory=list)
    _single: int | None = None

    @property
    def kappa(self) -> float | None:
        """The threshold for the question: its group's, where the promise is per group.

        None where the policy's actions are to be drawn.
        """
        return threshold(self.bundle, self.question.group)

    @property
    def space(self) -> ActionSpace:
        """Who may be asked, in what order."""
        origin = self.bundle.origin
        return action_space(self.bundle.policy.space, origin.horizon, len(origin.roles))

    def next(self, line: int) -> Step:
        """Return the next step of a line."""
        return self.lines[line][self._history.count(line)]

    def open_lines(self) -> list[int]:
        """Return the lines that have a step left."""
        counts = range(len(self.lines))
        return [f for f in counts if self._history.count(f) < len(self.lines[f])]

    def decide(self, steps: Steps, bounds: Bounds, left_nano: int | None = None) -> int:
        """Decide after the steps so far; return the line to buy from, or `NOTHING`.

        Args:
            steps: the calls of every step so far; the latest is the one that was decided on last.
            bounds: what each open line's next step can cost; read where there is a budget.
            left_nano: what is left of the budget, in nano-dollars; None where there is none.
        """
        state = self._state(steps, bounds, left_nano)
        uniform = float(self.rng.random()) if state.turn else 0.0
        decision, action = self._decided(state, uniform)
        if state.turn:
            self._hear(steps[-1], state, decision, action)
        if state.budget is not None:
            _, wanted = self._decided(replace(state, budget=None), uniform)
            self.cut = bool(action.line[0] == NOTHING != wanted.line[0])
            same = action.line[0] == wanted.line[0] and (action.joins == wanted.joins).all()
            self.departed |= not same
        return int(action.line[0])

    def _decided(self, state: State, uniform: float) -> tuple[Decision, Action]:
        kappa, decision = self.kappa, self.bundle.policy.decide(state)
        if kappa is not None:
            decision = all_actions(decision, state, kappa)
        if not state.turn:
            return decision, Action(decision.line, np.zeros((1, 0), dtype=bool))
        if kappa is None:
            return decision, sample_actions(decision, np.array([uniform]))
        return decision, threshold_actions(decision, kappa, self.bundle.empty)

    def bought(self, line: int) -> None:
        """Note that the next step of a line was made."""
        self._history.append(line)

    def answers(self) -> tuple[Returned, ...]:
        """Return the set: distinct answers, the best first, as a replay ranks them."""
        members = [one for one in self.heard if one.joins]
        return self._distinct(self._ranked(members))

    def otherwise(self) -> tuple[Returned, ...]:
        """Return the best of all answers so far, for a question that is cut with an empty set."""
        return self._distinct(self._ranked(self.heard))[:1]

    def _ranked(self, among: Iterable[Heard]) -> list[Heard]:
        """Return answers, the best first: the single one, then by score; of equals the latest."""
        return sorted(
            among,
            key=lambda one: (one.place == self._single, one.score, one.step, one.place),
            reverse=True,
        )

    def _distinct(self, ranked: Iterable[Heard]) -> tuple[Returned, ...]:
        found: dict[str, Returned] = {}
        for one in ranked:
            found.setdefault(self.task.normalise(one.call.answer or ""), one.returned())
        return tuple(found.values())

    def _state(self, steps: Steps, bounds: Bounds, left_nano: int | None) -> State:
        space, origin = self.space, self.bundle.origin
        history = np.array([self._history], dtype=np.int64)
        replies = replies_of(self.bundle.policy)
        text, group = self.question.question, self.question.group
        observer = Observer(text, origin, self.task.normalise, replies, group)
        places = self._places()
        calls = list(chain.from_iterable(steps))
        lengths = [len(line) for line in self.lines]
        offered = np.arange(space.items) < np.array(lengths)[:, None]
        seen = observer.observe(calls, places)
        return State(
            seen,
            space,
            offered[None],
            history,
            None if left_nano is None else self._budget(space, bounds, left_nano, seen),
            0.0 if self.kappa is None else self.kappa,
        )

    def _places(self) -> list[int]:
        counts = [0] * len(self.lines)
        places: list[int] = []
        for line in self._history:
            places += self.space.cells[line, counts[line]].tolist()
            counts[line] += 1
        return places

    def _budget(
        self, space: ActionSpace, bounds: Bounds, left_nano: int, seen: TraceArrays
    ) -> Budget:
        """Return the budget of which exactly so much is left.

        The ledger knows it: it has settled tries of unknown cost, and the replies of an LLM that
        was asked what to do. The state takes off again what the calls that it has seen cost.
        """
        largest = np.zeros((1, space.cells.size), dtype=np.int64)
        for line, nano in bounds.items():
            largest[0, space.cells[line, self._history.count(line), 0]] = nano
        return Budget(left_nano + int(seen.cost_nano.sum()), largest)

    def _hear(
        self, calls: Sequence[Call], state: State, decision: Decision, action: Action
    ) -> None:
        asked = [call for call in calls if not is_reply(call.role)]
        for unit, (call, place) in enumerate(zip(asked, state.latest[0].tolist(), strict=True)):
            if call.answer is not None and is_answer(call.answer):
                score, joins = float(decision.answers[0, unit]), bool(action.joins[0, unit])
                self.heard.append(Heard(call, place, len(self._history) - 1, score, joins))
        if decision.single is not None:
            self._single = int(decision.single[0])


def threshold(bundle: Bundle, group: str | None) -> float | None:
    """Return the threshold for a question: its group's, where the promise is per group.

    None where the policy's actions are to be drawn.
    """
    if bundle.kappa is None:
        return None if bundle.policy.stochastic else AS_IT_IS
    groups = groups_of(bundle.certificate)
    return groups[group].kappa if group in groups else bundle.kappa

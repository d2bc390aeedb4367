"""What is known of a question under way, as arrays: those that a replay of its trace would show."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from farthing.traces.arrays import NO_ANSWER, NO_SPLIT, SIGNALS, PolicyReplies, Signal, TraceArrays
from farthing.traces.assemble import reply_action
from farthing.traces.base import Call
from farthing.traces.costs import charged_nano
from farthing.traces.grades.codes import answer_codes
from farthing.traces.pool import is_thought
from farthing.traces.system import Origin
from farthing.traces.text_signals import OF_ANSWER, OF_QUESTION, read_answer, read_question
from farthing.traces.trace_kind import is_reply


@dataclass(frozen=True)
class Observer:
    """Turns the calls of one question into arrays, [1, T, L]."""

    question: str
    origin: Origin
    normalise: Callable[[str], str]
    """As the question's task normalises answers."""
    replies: str | None = None
    """The role whose replies the policy goes by, if it does."""
    group: str | None = None
    """The question's, where it is of one."""

    def observe(self, calls: Sequence[Call], places: Sequence[int]) -> TraceArrays:
        """Return what the calls so far say; the rest is empty, and there are no grades.

        Each call that answers has a place, t * L + l for its round t and role l; replies of an LLM
        that was asked what to do have none.
        """
        answering = [call for call in calls if not is_reply(call.role)]
        order = np.argsort(places, kind="stable")  # codes are numbered as in a recorded trace
        ordered = [answering[i] for i in order]
        at = np.asarray(places, dtype=np.int64)[order]
        shape = (1, self.origin.horizon, len(self.origin.roles))
        answer = np.full(shape, NO_ANSWER, dtype=np.int16)
        answer.reshape(-1)[at] = answer_codes([call.answer for call in ordered], self.normalise)
        cost = np.zeros(shape, dtype=np.int64)
        cost.reshape(-1)[at] = [charged_nano(call) for call in ordered]
        made = np.zeros(shape, dtype=bool)
        made.reshape(-1)[at] = True
        return TraceArrays(
            ids=np.array([""]),
            roles=self.origin.roles,
            models=self.origin.models,
            answer=answer,
            correct=np.zeros(shape, dtype=bool),
            cost_nano=cost,
            made=made,
            signals=self._signals(ordered, at, shape),
            group=np.array([-1 if self.group is None else 0], dtype=np.int32),
            group_names=() if self.group is None else (self.group,),
            split=np.array([NO_SPLIT], dtype=np.int8),
            recorded=np.array([self.origin.horizon], dtype=np.int16),
            independent=np.array([self.origin.independent is not False]),
            replies=self._replies(calls, shape),
            question=np.array([self.question], dtype=object),
            cuts=is_thought(self.origin.roles),
        )

    def _signals(
        self, calls: Sequence[Call], at: np.ndarray, shape: tuple[int, int, int]
    ) -> dict[str, Signal]:
        known = self.origin.signals
        names = (*SIGNALS, *OF_QUESTION, *OF_ANSWER) if known is None else known
        about = dict(zip(OF_QUESTION, read_question(self.question), strict=True))
        found = {}
        for name in names:
            values = np.full(shape, np.nan, dtype=np.float32)
            if name in about:
                number = about[name]
                values.fill(np.nan if number is None else number)
            elif calls:
                values.reshape(-1)[at] = _stored([_signal(call, name) for call in calls])
            found[name] = values
        return found

    def _replies(
        self, calls: Sequence[Call], shape: tuple[int, int, int]
    ) -> dict[str, PolicyReplies]:
        if self.replies is None:
            return {}
        action = np.full(shape[:2], -1, dtype=np.int8)
        cost = np.zeros(shape[:2], dtype=np.int64)
        for call in calls:
            if call.role == self.replies:
                action[0, call.round - 1] = reply_action(call, self.origin.roles)
                cost[0, call.round - 1] = charged_nano(call)
        return {self.replies: PolicyReplies(action, cost)}


def _signal(call: Call, name: str) -> float | None:
    if name in OF_ANSWER:
        return read_answer(call.answer)[OF_ANSWER.index(name)]
    if name in SIGNALS:
        value: float | None = getattr(call, name)
        return value
    return call.extra.get(name)


def _stored(values: Sequence[float | None]) -> Signal:
    """Return numbers as `TraceArrays` has them: in single precision, NaN for none."""
    largest = float(np.finfo(np.float32).max)
    numbers = np.array([math.nan if v is None else float(v) for v in values])
    stored: Signal = np.clip(numbers, -largest, largest).astype(np.float32)
    return stored

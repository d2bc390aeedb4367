"""Prose that a try collected: a judge says of each answer whether it is the same as the logged one.

What it says is kept in the traces as what is right, so that parity with the reference is a share of
answers that the judge calls the same. Its calls are in the store's journal: budgeted, and never
paid twice. Of its own error two things are measured: how often it calls the reference's second
answers the same, and how often the logged answers to other requests. Whether it errs on answers
that are nearly the same, only people can say.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from msgspec import structs

from farthing.errors import BudgetError
from farthing.models.config import ModelsConfig
from farthing.models.prices import Price
from farthing.models.providers import models_named
from farthing.runtime.agents.judge import Judge, Judgement
from farthing.runtime.journal import exclusive_lock
from farthing.runtime.replay import Again, Replay
from farthing.tasks.base import Question, Task, is_answer
from farthing.traces.base import Trace
from farthing.traces.store import Store

LOSS = Fraction(1, 20)
"""The share that may be called another answer, where nobody says."""


@dataclass(frozen=True)
class JudgeErrors:
    """What a judge said of pairs whose truth is nearly known."""

    again: tuple[int, int]
    """Of the reference's second answers: how many it calls the same, of how many."""
    others: tuple[int, int]
    """Of logged answers to other requests: how many it calls the same, of how many."""


@dataclass(frozen=True)
class JudgedReplay:
    """A replay whose answers a judge compares."""

    replay: Replay
    config: ModelsConfig
    """The judge alone."""

    @classmethod
    def named(cls, replay: Replay, judge: str, prices: Mapping[str, Price]) -> "JudgedReplay":
        """Return a replay with a judge that is named as models are.

        Raises:
            InputError: it is unknown, or has no key or price.
        """
        return cls(replay, models_named([judge], prices))

    @property
    def name(self) -> str:
        """What the judge is called."""
        return next(iter(self.config.sections))

    def price_nano(self, again: Again | None, others: int, path: Path) -> tuple[int, int]:
        """Return what the judge likely costs, and the most, in nano-dollars.

        What the store has been told already costs nothing.

        Args:
            again: the reference's second answers, those that are known; None: there are none.
            others: how many logged answers are compared with those of other requests.
            path: the store; there may be none yet.
        """
        traces = {trace.id: trace for trace in self._traces(path)} if path.is_file() else {}
        known = [one for trace in traces.values() for one in self._wanted(trace)]
        known += [*self._seconds(again), *self._elsewhere(others)]
        expected = []
        for name, request in self.replay.sample.items():
            there = {call.role for call in traces[name].calls} if name in traces else set()
            times = len(set(self.replay.names) - there)
            times += again is not None and name in again.sample and not again.knows(name)
            call = request.call(self.replay.reference)
            said = (call and call.answer) or ""
            likely = Judgement(Question(name, request.trace.question), said, said)
            longest = replace(likely, answer="x" * self.replay.limit_of(request))
            expected += times * [(likely, longest)]
        return Judge(self.config, self.name, path, 0).price_nano(known, expected)

    def judge(self, path: Path, cap_nano: int) -> int:
        """Have the judge say of all answers in a store what it has not said, and keep that there.

        Returns:
            How many answers it said neither yes nor no of; of those nothing is known.

        Raises:
            BudgetError: the cap is reached; what it said is in the journal.
        """
        traces = self._traces(path)
        wanted = [one for trace in traces for one in self._wanted(trace)]
        said = self._say(path, cap_nano, wanted)
        with exclusive_lock(path), Store.open(path) as store:
            for trace in traces:
                found = self._with_verdicts(trace, said)
                if found != trace:
                    store.replace(found, f"try {self.replay.file}")
        return len({(one.question.id, one.answer) for one in wanted} - said.keys())

    def errors(self, again: Again | None, others: int, path: Path, cap_nano: int) -> JudgeErrors:
        """Have the judge compare second answers, and answers to other requests."""
        seconds, elsewhere = self._seconds(again), self._elsewhere(others)
        known = self._say(path, cap_nano, [*seconds, *elsewhere])
        answers = [] if again is None else again.second_answers
        identical = sum(self._identical(first, other) for *_, first, other in answers)
        same = [known.get((one.question.id, one.answer)) for one in seconds]
        false = [known.get((one.question.id, one.answer)) for one in elsewhere]
        return JudgeErrors(
            (identical + same.count(True), len(answers)), (false.count(True), len(false))
        )

    def _traces(self, path: Path) -> list[Trace]:
        with Store.read(path) as store:
            found = list(store.traces())
        return [one for one in found if any(call.role == self.replay.role for call in one.calls)]

    def _seconds(self, again: Again | None) -> list[Judgement]:
        return [] if again is None else list(_pairs(again.second_answers, self.replay.task))

    def _elsewhere(self, others: int) -> list[Judgement]:
        sample = list(self.replay.sample.values())
        said = [(one.trace, one.call(self.replay.reference)) for one in sample]
        answers = [(trace, (call and call.answer) or "") for trace, call in said]
        shifted = [
            (trace.id, trace.question, first, other)
            for (trace, first), (_, other) in pairwise(answers)
        ]
        return list(_pairs(shifted[:others], self.replay.task))

    def _wanted(self, trace: Trace) -> list[Judgement]:
        """Return the answers of a trace that are not the logged one to the letter."""
        logged = self._logged(trace)
        others = (c.answer for c in trace.calls if c.role != self.replay.role and c.answer)
        found = [(trace.id, trace.question, logged, other) for other in dict.fromkeys(others)]
        return list(_pairs(found, self.replay.task))

    def _with_verdicts(self, trace: Trace, said: Mapping[tuple[str, str], bool]) -> Trace:
        logged = self._logged(trace)

        def same(answer: str | None) -> bool | None:
            if answer is None or not is_answer(answer):
                return None
            if not is_answer(logged) or self._identical(answer, logged):
                return is_answer(logged)
            return said.get((trace.id, answer))

        calls = [structs.replace(call, correct=same(call.answer)) for call in trace.calls]
        return structs.replace(trace, calls=calls, gold=[])

    def _identical(self, first: str, other: str) -> bool:
        """Return whether there are two answers, and the task holds them for one."""
        normal = self.replay.task.normalise
        return is_answer(first) and is_answer(other) and normal(first) == normal(other)

    def _logged(self, trace: Trace) -> str:
        return next(c.answer or "" for c in trace.calls if c.role == self.replay.role)

    def _say(
        self, path: Path, cap_nano: int, wanted: Sequence[Judgement]
    ) -> dict[tuple[str, str], bool]:
        """Return what the judge says, by question and answer; what it said before is not paid."""
        said: dict[tuple[str, str], bool] = {}

        def keep(one: Judgement) -> None:
            said[one.question.id, one.answer] = bool(one.says)

        problem = Judge(self.config, self.name, path, cap_nano).ask(wanted, keep)
        if problem is not None:
            raise BudgetError(
                f"the judge was not asked everything: {problem}; what it said is kept, run it "
                "again with a larger --max-cost to go on"
            )
        return said


def _pairs(found: Iterable[tuple[str, str, str, str]], task: Task) -> Iterable[Judgement]:
    """Yield what a judge has to compare: question, first and other answer, where they differ."""
    for name, text, first, other in found:
        if is_answer(first) and is_answer(other) and task.normalise(first) != task.normalise(other):
            yield Judgement(Question(name, text), other, first)

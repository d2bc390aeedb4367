"""Requests that a model refuses although it answers others: no answer to these is a result.

A provider says 400, 404 or 422 of one prompt that it will never take, and of every prompt where
the model's name or a parameter is wrong. Asking again mends neither. So a refused request waits
until the end: if its model answered others in this run, it is recorded with the refusal, as any
call without an answer; else nothing is recorded, and the next run asks again. What a model answered
in an earlier run says nothing: its name or a parameter may be another since.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from farthing.errors import BadRequestError
from farthing.traces.base import Call, Trace

IN_A_ROW = 25
"""Requests refused one after another from which on a model answers no more."""


@dataclass
class Refusals:
    """The questions of a collection that wait for what is made of a model's refusal."""

    answered: set[str] = field(default_factory=set)
    """Roles that gave a reply in this run."""
    latest: Counter[str] = field(default_factory=Counter)
    """Role to the requests that it refused since its latest reply."""
    waiting: list[Trace] = field(default_factory=list)

    def note(self, calls: Iterable[Call]) -> None:
        """Count the replies and refusals of one question."""
        for call in calls:
            if call.error is None:
                self.answered.add(call.role)
                self.latest.pop(call.role, None)
            elif refuses(call):
                self.latest[call.role] += 1

    @property
    def hopeless(self) -> str | None:
        """Say who answered before, and does so no more; None where nobody."""
        for role, n in self.latest.items():
            if n >= IN_A_ROW and role in self.answered:
                return f"{role} refused the latest {n} requests"
        return None

    def results(self) -> Iterator[Trace]:
        """Yield what is to be recorded: all refusals in it are of models that answer others."""
        for trace in self.waiting:
            roles = {call.role for call in trace.calls if refuses(call)}
            if roles <= self.answered and all(self.latest[role] < IN_A_ROW for role in roles):
                yield trace


def refuses(call: Call) -> bool:
    """Return whether a model refused a request for a reason that it alone knows."""
    return call.error is not None and call.error.type == BadRequestError.kind

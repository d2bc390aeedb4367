"""What came of a question: the answers, what they cost, and what is promised of them."""

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from farthing.money import usd_from_nano
from farthing.promises.certificate import Certificate
from farthing.tasks.base import is_answer
from farthing.traces.base import Call, Trace
from farthing.traces.system import Provenance
from farthing.traces.trace_kind import is_reply

Ending = Literal["policy", "budget", "failure"]
"""Who ended it: the policy (or there was no round left), the budget, or a key that is wrong."""

Bought = Literal["rounds", "calls"]
"""What the policy buys at a time."""

ABSTAINS = "No answer is given: the policy is not sure enough of any."
UNREAD = "No answer could be read from any reply."
FAILED = "There is no answer, since every call failed."
NO_CERTIFICATE = "No certificate: the bundle was not calibrated, so nothing is promised."


_BY = {"policy": "the policy", "budget": "the budget", "failure": "a failure"}


def selective(certificate: Certificate | None) -> bool:
    """Return whether answers are promised to be right where they are given, and not given else."""
    return certificate is not None and certificate.promise.withholds and certificate.promises


def passes_to(certificate: Certificate | None) -> str | None:
    """Return the role that other questions are passed on to, by promise; None: to nobody."""
    return certificate.promise.passes_to if certificate and certificate.promises else None


@dataclass(frozen=True)
class Returned:
    """One answer of the set."""

    text: str
    """As it was given, where equal ones scored highest."""
    score: float
    """What the policy thinks of it, in [0, 1]."""
    round: int
    """From 1; in a pool, as the how-manieth the model was asked."""
    role: str


@dataclass(frozen=True)
class Answer:
    """What came of one question."""

    id: str
    answers: tuple[Returned, ...]
    """The set: distinct answers, the best first; empty where there is none."""
    best: str | None
    """The single best answer, as a replay ranks them; after an escalation, what that gave."""
    cost_nano: int | None
    """What was paid, in nano-dollars; None where some price is not known."""
    rounds: int
    """Rounds that were run in full; where the policy buys single calls, calls that were made."""
    most_rounds: int
    """How many there can be."""
    bought: Bought
    """Which of the two."""
    certificate: Certificate | None
    """The promise of the bundle."""
    caveats: tuple[str, ...]
    """Why it does not hold for this answer, a clause each; nothing where it does."""
    ended_by: Ending
    trace: Trace
    """Everything that the policy asked and heard; truncated where rounds are left."""
    escalated: Call | None = None
    """The call to whom the question was passed on because the policy abstained; one that had been
    made already is not made again."""
    provenance: Provenance = "unknown"
    """Whether it was asked as the questions in the bundle's traces were."""

    @property
    def calls(self) -> list[Call]:
        """All calls: those of the trace, and the one to whom the question was passed on."""
        return [*self.trace.calls, *([self.escalated] if self.escalated else [])]

    @property
    def cost_usd(self) -> float | None:
        """What was paid, in US dollars, for display."""
        return None if self.cost_nano is None else usd_from_nano(self.cost_nano)

    @property
    def abstained(self) -> bool:
        """Whether the policy withholds its answer, as a promise about given answers asks it to."""
        return selective(self.certificate) and not self.answers and self.ended_by == "policy"

    @property
    def guaranteed(self) -> bool:
        """Whether a promise holds for this answer; not where none is given."""
        promises = self.certificate is not None and self.certificate.promises
        return promises and not self.caveats and (not self.abstained or self._passed_as_promised)

    @property
    def _passed_as_promised(self) -> bool:
        return self.escalated is not None and passes_to(self.certificate) is not None

    @property
    def unread(self) -> str:
        """Say that calls were made and none of them gave an answer; nothing where one did.

        A promise of coverage holds all the same: of its questions as many went that way.
        """
        made = [call for call in self.trace.calls if not is_reply(call.role)]
        if not made or self.best is not None or any(is_answer(call.answer) for call in made):
            return ""
        return FAILED if all(call.error for call in made) else UNREAD

    @property
    def promise(self) -> str:
        """Say in plain sentences what is promised of this answer, and where there is none, why."""
        return " ".join(filter(None, [self.unread, self._promised()]))

    def _promised(self) -> str:
        clauses = "; ".join(self.caveats)
        if self.abstained:
            return self._withheld()
        if self.certificate is not None and self.certificate.promises:
            broken = f"The bundle's promise does not hold for this answer: {clauses}."
            return broken if clauses else self.certificate.sentence()
        nothing = self.certificate.sentence() if self.certificate else NO_CERTIFICATE
        return f"{nothing} Besides, {clauses}." if clauses else nothing

    def _withheld(self) -> str:
        why = "".join(f" Besides, {clause}." for clause in self.caveats)
        if self.escalated is None:
            return f"{ABSTAINS}{why}"
        if self._passed_as_promised and self.certificate is not None:
            said = (
                f"The policy is not sure enough of any answer, so {self.escalated.model} answered."
            )
            return f"{said} {self.certificate.sentence()}{why}"
        whose = f"the question was passed on to {self.escalated.model}, whose answers are not part"
        return f"The policy is not sure enough of any answer; {whose} of the promise.{why}"

    def __str__(self) -> str:
        """Return a few lines: the best answer, the set, what was paid, what is promised."""
        whose = "" if self.escalated is None else f" (from {self.escalated.model})"
        returned = [f"{one.text} ({one.score:.2f})" for one in self.answers]
        cost = "unknown" if self.cost_usd is None else f"${self.cost_usd:.6f}"
        after = f"after {self.rounds} of {self.most_rounds} {self.bought}"
        return (
            f"answer   {self.best or 'none'}{whose}\n"
            f"set      {', '.join(returned) or 'empty'}\n"
            f"cost     {cost}, ended by {_BY[self.ended_by]} {after}\n"
            f"promise  {self.promise}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return {
            "id": self.id,
            "question": self.trace.question,
            "answer": self.best,
            "answers": [msgspec.to_builtins(returned) for returned in self.answers],
            "cost_usd": self.cost_usd,
            "cost_nano": self.cost_nano,
            "rounds": self.rounds,
            "bought": self.bought,
            "ended_by": self.ended_by,
            "guaranteed": self.guaranteed,
            "abstained": self.abstained,
            "escalated": self.escalated and msgspec.to_builtins(self.escalated),
            "promise": self.promise,
            "caveats": list(self.caveats),
            "provenance": self.provenance,
            "certificate": self.certificate and self.certificate.to_json(),
            "trace": msgspec.to_builtins(self.trace),
        }

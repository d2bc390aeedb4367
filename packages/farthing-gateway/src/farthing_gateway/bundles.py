"""Who may decide about a policy's requests, and who does so under a request's budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar
from typing import Protocol as Interface

from farthing.bundle.base import Bundle
from farthing.models.base import Model
from farthing.models.config import ModelsConfig
from farthing.process.value import PolicyValue
from farthing.promises.certificate import Certificate
from farthing.runtime.answer import Answer
from farthing.runtime.base import Agent, Turn
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import Protocol, cost_bound
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question, Task
from farthing.traces.system import Provenance, unrecorded

_ASKED_WITH: Mapping[Provenance, str] = {
    "same": "as its traces were",
    "changed": "otherwise than its traces were",
    "unknown": "unknown",
}


class ServedMode(Interface):
    """Who decides in a mode of a policy, and what is promised of that: a bundle or a controller."""

    @property
    def mode(self) -> str:
        """Its name."""
        ...

    @property
    def certificate(self) -> Certificate | None:
        """What was proved of it; None: nothing ever was."""
        ...

    @property
    def certificate_id(self) -> str | None:
        """A mark of the certificate's JSON; None where nothing is certified."""
        ...

    @property
    def value(self) -> PolicyValue | None:
        """What it costs and is worth; None: nobody measured that."""
        ...

    @property
    def reliability(self) -> Fraction | None:
        """The least share of answers that is promised to be right, or to be the reference's."""
        ...

    @property
    def question_budget_nano(self) -> int | None:
        """The budget that its promise was calibrated under."""
        ...

    @property
    def invalid_because(self) -> Sequence[str]:
        """Why nothing that was proved holds of what answers now, a clause each."""
        ...

    @property
    def whole_replies(self) -> bool:
        """Whether clients get the whole reply that an answer was read from; else answers alone."""
        ...

    async def answer(self, question: Question, *, budget_nano: int | None, meter: Meter) -> Answer:
        """Answer a question, for at most so many nano-dollars; the meter pays."""
        ...

    def answered(self, done: Answer) -> bool:
        """Return whether what came of a question is its end, and no failure or lack of money."""
        ...

    def says(self, done: Answer) -> str:
        """Return what is promised of an answer, in a sentence or more, or why nothing is."""
        ...


class Decider(Interface):
    """Who decides without a bundle, as registered under `farthing.deciders`."""

    @property
    def models(self) -> ModelsConfig:
        """Its models and those that it asks."""
        ...

    @property
    def task(self) -> Task:
        """How answers are compared."""
        ...

    @property
    def max_tokens(self) -> int:
        """Most tokens of a reply."""
        ...

    def served(
        self, models: Mapping[str, Model]
    ) -> tuple[tuple[Agent, ...], Mapping[str, ServedMode]]:
        """Return whom it asks, and who decides in each mode, the cheapest first."""
        ...


@dataclass(frozen=True)
class ServedBundle:
    """A bundle that decides, with the agents that it decides about."""

    whole_replies: ClassVar = True

    mode: str
    bundle: Bundle
    runner: PolicyRunner
    certificate_id: str | None
    """A mark of the certificate's JSON; None where nothing is certified."""

    @property
    def certificate(self) -> Certificate | None:
        """What was proved of it; None where it was not calibrated."""
        return self.bundle.certificate

    @property
    def value(self) -> PolicyValue | None:
        """What it came to on its traces; None: it does not say."""
        return self.bundle.value

    @property
    def reliability(self) -> Fraction | None:
        """The least share of answers that is promised to be right, or to be the reference's.

        Parity promises neither: its epsilon is a difference of accuracies. None: nothing of it is
        promised.
        """
        certificate = self.bundle.certificate
        if certificate is None or not certificate.promises or self.invalid_because:
            return None
        return certificate.promise.reliability

    @property
    def invalid_because(self) -> Sequence[str]:
        """Why nothing that was proved holds of what answers now, a clause each."""
        return self.runner.validity.invalid_because

    @property
    def asked_with(self) -> str:
        """Say whether requests are made as those of its traces were, for its owner to read."""
        if self.runner.validity.provenance != "unknown":
            return _ASKED_WITH[self.runner.validity.provenance]
        lacks = " and ".join(unrecorded(self.bundle.origin.system))
        return f"{_ASKED_WITH['unknown']}: the traces say nothing of their {lacks}"

    @property
    def unproved(self) -> bool:
        """Whether a promise was asked for and not proved: it is not for this bundle to decide."""
        certificate = self.bundle.certificate
        return certificate is not None and certificate.promise.sought and not certificate.promises

    @property
    def question_budget_nano(self) -> int | None:
        """The budget that its promise was calibrated under."""
        certificate = self.bundle.certificate
        return certificate.question_budget_nano if certificate else None

    async def answer(self, question: Question, *, budget_nano: int | None, meter: Meter) -> Answer:
        """Answer a question as the bundle decides."""
        return await self.runner.answer(question, budget_nano=budget_nano, meter=meter)

    def answered(self, done: Answer) -> bool:
        """Return whether somebody answered, or the bundle withheld its answer."""
        return done.abstained or any(call.error is None for call in done.calls)

    def says(self, done: Answer) -> str:
        """Return what the certificate promises of an answer."""
        return done.promise


@dataclass(frozen=True)
class BundleChoice:
    """Who decides about a request, and under which budget."""

    loaded: ServedMode | None
    """None: the strongest model answers."""
    budget_nano: int | None = None
    why: str = ""
    """Why nothing is promised of it; empty where something may be."""
    ended: str = ""
    """Why what its certificate promised is promised no more; empty where it is."""


def select_bundle(
    some: list[ServedMode], budget_nano: int | None, most_nano: int | None
) -> BundleChoice:
    """Return the cheapest mode, or the one whose calibrated budget fits best.

    Args:
        some: the modes, the cheapest first.
        budget_nano: what the request may cost; None: it does not say.
        most_nano: the most that can be spent on it; a budget of so much binds nothing.
    """
    if all(one.certificate is None for one in some):
        return BundleChoice(some[0], budget_nano)
    if budget_nano is None or (most_nano is not None and budget_nano >= most_nano):
        free = [one for one in some if one.question_budget_nano is None]
        first = (free or some)[0]
        return BundleChoice(first, first.question_budget_nano)
    budgets = {one.question_budget_nano: one for one in some}
    fitting = [nano for nano in budgets if nano is not None and nano <= budget_nano]
    if fitting:
        return BundleChoice(budgets[max(fitting)], max(fitting))
    why = "nothing was calibrated under a budget that fits into this one"
    return BundleChoice(some[0], budget_nano, why)


async def most_nano(plan: Protocol, question: Question, tries: int) -> int | None:
    """Return the most that a policy over a plan can spend on a question, in nano-dollars.

    It asks each agent once at most, and one more time where it passes the question on; each call is
    tried so often at most, and a try of unknown outcome counts as the dearest. None where a model
    has no price.
    """
    bounds = [await cost_bound(agent, Turn(question, number)) for number, agent in plan.turns()]
    known = [nano for nano in bounds if nano is not None]
    return None if len(known) < len(bounds) else tries * (sum(known) + max(known))

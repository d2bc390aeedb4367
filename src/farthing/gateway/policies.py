"""The policies of a gateway: which requests are their task, and which bundle decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.calibration.guarantees.agreement import AgreementPromise
from farthing.errors import InputError
from farthing.gateway.chat_agent import ChatAgent
from farthing.gateway.requests import ChatRequest, Wishes
from farthing.gateway.sections import PolicySection
from farthing.gateway.watching.deployments import certificate_mark
from farthing.runtime.base import Agent
from farthing.runtime.orchestrator import Orchestrator
from farthing.runtime.rounds import Plan
from farthing.tasks.base import Task
from farthing.traces.system import System

_TAKEN = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "n", "user", "metadata", "store"),
        *("max_tokens", "max_completion_tokens", "temperature", "safety_identifier"),
        *("prompt_cache_key", "seed"),
    }
)
"""Parameters that a request of a task may have; any other may change what models reply."""
_INSTRUCTING = frozenset({"system", "developer"})
_NO_EFFECT: tuple[Any, ...] = (None, False, 0, 1, [], {}, "none", "auto", {"type": "text"})


@dataclass(frozen=True)
class Loaded:
    """A bundle that decides, with the agents that it decides about."""

    mode: str
    bundle: Bundle
    orchestrator: Orchestrator
    certificate_id: str | None
    """A mark of the certificate's JSON; None where nothing is certified."""

    @property
    def reliability(self) -> Fraction | None:
        """The least share of answers that is promised to be right, or to be the reference's.

        Parity promises neither: its epsilon is a difference of accuracies. None: nothing of it is
        promised.
        """
        certificate = self.bundle.certificate
        if certificate is None or not certificate.promises:
            return None
        promise = certificate.promise
        if isinstance(promise, AgreementPromise):
            return 1 - promise.epsilon
        alpha = getattr(promise, "alpha", None)
        return 1 - alpha if isinstance(alpha, Fraction) else None

    @property
    def question_budget_nano(self) -> int | None:
        """The budget that its promise was calibrated under."""
        certificate = self.bundle.certificate
        return certificate.question_budget_nano if certificate else None


@dataclass(frozen=True)
class Chosen:
    """Which bundle answers a request, and under which budget."""

    loaded: Loaded | None
    """None: the strongest model answers."""
    budget_nano: int | None = None
    why: str = ""
    """Why nothing is promised of it; empty where something may be."""
    ended: str = ""
    """Why what its certificate promised is promised no more; empty where it is."""


@dataclass
class GatewayPolicy:
    """One policy: its task, its models, and the bundles that were read."""

    name: str
    section: PolicySection
    task: Task
    plan: Plan
    system: System
    max_output: int
    """Most output tokens of a request of the task."""
    tried: tuple[Agent, ...]
    """Whom trials may ask: the agents, and models that are not in the pool yet."""
    loaded: Mapping[str, Loaded] = field(default_factory=dict)
    """By mode, the cheapest first; replaced as a whole, since it is read while it is made."""
    looked: dict[str, float] = field(default_factory=dict)
    """By mode, when the files were written that were last looked at, damaged ones as well."""
    ended: Mapping[tuple[str, str | None], str] = field(default_factory=dict)
    """By mode and certificate, why a promise ended; replaced as a whole."""

    @property
    def to_try(self) -> tuple[Agent, ...]:
        """Whom trials ask: once a bundle decides, those alone who are not in the pool yet."""
        if not self.loaded:
            return self.tried
        return tuple(one for one in self.tried if one.role in self.section.trial)

    @property
    def to_audit(self) -> tuple[Agent, ...]:
        """Whom audits ask: the pool; nobody where calls see one another."""
        return tuple(one for one in self.to_explore if one.role not in self.section.trial)

    @property
    def to_explore(self) -> tuple[Agent, ...]:
        """Whom exploration asks: also those that are not in the pool yet."""
        return self.tried if self.pooled else ()

    @property
    def pooled(self) -> bool:
        """Whether each model answers by itself and once."""
        return self.plan.independent and all(number == 1 for number, _ in self.plan.acts())

    def why_ended(self, loaded: Loaded) -> str:
        """Say why what a bundle promised is promised no more; empty where it is."""
        return self.ended.get((loaded.mode, loaded.certificate_id), "")

    def load(self) -> list[str]:
        """Read bundles that are new or have changed; return the modes that were read.

        A bundle that is not there yet is no mistake: the strongest model answers until it is.

        Raises:
            InputError: bundles are damaged, or made for other models. Those that were read before
                stay in use, and the others are read; the same files are not looked at again.
        """
        found = dict(self.loaded)
        read, problems = [], []
        for mode, path in self.section.bundles.items():
            changed = _changed(Path(path))
            if changed is None or self.looked.get(mode) == changed:
                continue
            self.looked[mode] = changed
            try:
                found[mode] = self._read(mode, Path(path))
                read.append(mode)
            except InputError as error:
                problems.append(str(error))
        self.loaded = {mode: found[mode] for mode in self.section.bundles if mode in found}
        if problems:
            raise InputError("; ".join(problems))
        return read

    def outside(self, request: ChatRequest) -> str | None:
        """Say why a request is not part of the task; None where it is."""
        if not request.plain:
            return "it is more than plain text: tools, images, several choices or a format"
        return self._other_parameters(request) or self._other_messages(request.messages)

    def asked(self, request: ChatRequest) -> ChatRequest:
        """Return a request of the task with the task's limit and temperature where it names none.

        So a model that answers by itself is asked as trials and the policy ask it: what is recorded
        of it is what a certificate is about.
        """
        limits = {"max_tokens", "max_completion_tokens"}
        body = {name: value for name, value in request.body.items() if name not in limits}
        same = {"temperature": self._temperature, "max_completion_tokens": self.max_output}
        return replace(request, body=body | same, limit=self.max_output)

    def _other_parameters(self, request: ChatRequest) -> str | None:
        body = request.body
        others = sorted(name for name in body.keys() - _TAKEN if body[name] not in _NO_EFFECT)
        if others:
            return f"it sets {', '.join(others)[:80]}"
        if request.limit not in {None, self.max_output}:
            return f"it takes {request.limit} output tokens at most, the task {self.max_output}"
        temperature = body.get("temperature")
        if temperature not in {None, self._temperature}:
            return f"its temperature is {temperature}, and the task's {self._temperature:g}"
        return None

    def _other_messages(self, messages: Sequence[Mapping[str, Any]]) -> str | None:
        *before, last = messages
        if last.get("role") != "user":
            return "its last message is not the user's"
        if any(one.get("role") not in _INSTRUCTING for one in before):
            return "it has a history"
        if "".join(map(text_of, before)).strip() != self.section.system.strip():
            return "its system prompt is not the task's"
        return None

    def choose(self, wishes: Wishes) -> Chosen:
        """Return which bundle answers; a budget is rounded down to one that was calibrated.

        Raises:
            InputError: there is no such mode.
        """
        some = list(self.loaded.values())
        if wishes.mode is not None:
            if wishes.mode not in self.section.bundles:
                known = ", ".join(self.section.bundles) or "none"
                raise InputError(f"there is no mode '{wishes.mode:.40}'; there are: {known}")
            some = [one for one in some if one.mode == wishes.mode]
        if not some:
            return Chosen(None, wishes.budget_nano, "no bundle decides here yet")
        asked = wishes.reliability
        if asked is not None:
            some = [one for one in some if self._keeps(one, asked)]
            if not some:
                said = f"nothing here is proved at a reliability of {float(asked):g}"
                return Chosen(None, wishes.budget_nano, said)
        return _within(some, wishes.budget_nano)

    def _keeps(self, one: Loaded, asked: Fraction) -> bool:
        proved = one.reliability
        return proved is not None and proved >= asked and not self.why_ended(one)

    @property
    def _temperature(self) -> float:
        given = self.section.temperature
        return ChatAgent.temperature if given is None else given

    def _read(self, mode: str, path: Path) -> Loaded:
        bundle = bundles.load(path)
        orchestrator = Orchestrator(bundle, self.plan, self.task, system=self.system)
        return Loaded(mode, bundle, orchestrator, certificate_mark(bundle.certificate))


def text_of(message: Mapping[str, Any]) -> str:
    """Return what a message says in words.

    >>> text_of({"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]})
    '2 + 2?'
    """
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _within(some: list[Loaded], budget_nano: int | None) -> Chosen:
    """Return the cheapest bundle, or the one whose calibrated budget fits best."""
    if budget_nano is None:
        free = [one for one in some if one.question_budget_nano is None]
        first = (free or some)[0]
        return Chosen(first, first.question_budget_nano)
    budgets = {one.question_budget_nano: one for one in some}
    fitting = [nano for nano in budgets if nano is not None and nano <= budget_nano]
    if fitting:
        return Chosen(budgets[max(fitting)], max(fitting))
    why = "nothing was calibrated under a budget that fits into this one"
    return Chosen(some[0], budget_nano, why)


def _changed(path: Path) -> float | None:
    """Return when a bundle was last written; None where there is none."""
    try:
        return max(one.stat().st_mtime for one in (path, *path.iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return None

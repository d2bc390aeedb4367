"""The policies of a gateway: which requests are their task, and who decides about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from farthing.bundle import folder as bundles
from farthing.errors import InputError
from farthing.runtime.base import Agent
from farthing.runtime.protocol import Protocol
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question, Task
from farthing.traces.system import System
from farthing_gateway.apis.chat import CHAT
from farthing_gateway.bundles import (
    BundleChoice,
    ServedBundle,
    ServedMode,
    most_nano,
    select_bundle,
)
from farthing_gateway.chat_agent import ChatAgent
from farthing_gateway.chat_request import ChatRequest
from farthing_gateway.config_sections import PolicySection
from farthing_gateway.monitoring.deployments import certificate_mark
from farthing_gateway.options import RequestOptions
from farthing_gateway.task_match import Mismatch, TaskTemplate, text_of


@dataclass
class GatewayPolicy:
    """One policy: its task, its models, and the bundles that were read, or its controller."""

    name: str
    section: PolicySection
    task: Task
    plan: Protocol
    """Whom its bundles may ask; the experts of a controller."""
    system: System | None
    """What it is made of; None: nobody has said, as of a controller."""
    max_output: int
    """Most output tokens of a request of the task."""
    tried: tuple[Agent, ...]
    """Whom trials may ask: the agents, and models that are not in the pool yet."""
    tries: int | None = None
    """Most paid tries of a call, where nothing that is asked depends on what came before."""
    loaded: Mapping[str, ServedMode] = field(default_factory=dict)
    """By mode, the cheapest first; replaced as a whole, since it is read while it is made."""
    unproved: frozenset[str] = frozenset()
    """Modes whose bundles were read and promise nothing, as nothing was proved: none decides."""
    looked: dict[str, float] = field(default_factory=dict)
    """By mode, when the files were written that were last looked at, damaged ones as well."""
    ended: Mapping[tuple[str, str | None], str] = field(default_factory=dict)
    """By mode and certificate, why an alarm ended its promise; replaced as a whole."""

    @property
    def modes(self) -> tuple[str, ...]:
        """The names of its modes, the cheapest first: those of bundles, or of a controller."""
        return tuple(self.section.bundles or self.loaded)

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
        return self.plan.independent and all(number == 1 for number, _ in self.plan.turns())

    def why_ended(self, loaded: ServedMode) -> str:
        """Say why an alarm ended what a bundle promised; empty where none did."""
        return self.ended.get((loaded.mode, loaded.certificate_id), "")

    def why_over(self, loaded: ServedMode) -> str:
        """Say why nothing that a bundle promised is promised now; empty where it is."""
        return "; ".join(loaded.invalid_because) or self.why_ended(loaded)

    def load(self) -> list[str]:
        """Read bundles that are new or have changed; return the modes that were read.

        A bundle that is not there yet is no mistake: the strongest model answers until it is, and
        while nothing is proved of the one that is.
        """
        found, unproved = dict(self.loaded), set(self.unproved)
        read, problems = [], []
        for mode, path in self.section.bundles.items():
            changed = _changed(Path(path))
            if changed is None or self.looked.get(mode) == changed:
                continue
            self.looked[mode] = changed
            try:
                loaded = self._read(mode, Path(path))
                read.append(mode)
                found.pop(mode, None)
                unproved.discard(mode)
                if loaded.unproved:
                    unproved.add(mode)
                else:
                    found[mode] = loaded
            except InputError as error:
                problems.append(str(error))
        self.loaded = {mode: found[mode] for mode in self.modes if mode in found}
        self.unproved = frozenset(unproved)
        if problems:
            raise InputError("; ".join(problems))
        return read

    @property
    def certificates(self) -> dict[str, str | None]:
        """The certificate of each mode that was read; None where nothing is promised of it."""
        all_ = self.loaded.values()
        held = {one.mode: None if self.why_over(one) else one.certificate_id for one in all_}
        return {
            mode: held.get(mode) for mode in self.modes if mode in held or mode in self.unproved
        }

    def notes(self, *modes: str) -> list[str]:
        """Say of which bundles nothing is promised, and who answers, a line each; of some modes."""
        found = []
        for mode in modes or self.modes:
            which = f"the bundle of policy {self.name}, mode {mode}"
            if mode in self.unproved:
                said = "promises nothing, as nothing was proved: the strongest model answers"
                found.append(f"{which}, {said}")
            elif mode in self.loaded and (why := self.why_over(self.loaded[mode])):
                said = "holds no more: it goes on deciding, and nothing is promised"
                found.append(f"{which}, {said} ({why})")
        return found

    def outside(self, request: ChatRequest) -> Mismatch | None:
        """Say why a request is not part of the task; None where it is."""
        return TaskTemplate(self.section.system, self.max_output, self._temperature).mismatch(
            request
        )

    def asked(self, request: ChatRequest) -> ChatRequest:
        """Return a request of the task with the task's limit and temperature where it names none.

        So a model that answers by itself is asked as trials and the policy ask it: what is recorded
        of it is what a certificate is about.
        """
        limits = {"max_tokens", "max_completion_tokens"}
        body = {name: value for name, value in request.body.items() if name not in limits}
        same = {"temperature": self._temperature, "max_completion_tokens": self.max_output}
        limit = self.max_output
        return replace(request, body=body | same, limit=limit, api=CHAT, native=None)

    async def most_nano(self, request: ChatRequest) -> int | None:
        """Return the most that the policy can spend on a request; None: nothing bounds it."""
        question = Question("", text_of(request.messages[-1]))
        return None if self.tries is None else await most_nano(self.plan, question, self.tries)

    def choose(self, options: RequestOptions, most_nano: int | None = None) -> BundleChoice:
        """Return who decides; a budget is rounded down to one that was calibrated.

        Args:
            options: of the request.
            most_nano: the most that can be spent on it; a budget of so much binds nothing.
        """
        some = list(self.loaded.values())
        if options.mode is not None:
            if options.mode not in self.modes:
                known = ", ".join(self.modes) or "none"
                raise InputError(f"there is no mode '{options.mode:.40}'; there are: {known}")
            some = [one for one in some if one.mode == options.mode]
        if not some:
            unproved = "of the bundle that is here nothing was proved, so it does not decide"
            here = self.unproved if options.mode is None else self.unproved & {options.mode}
            why = unproved if here else "no bundle decides here yet"
            return BundleChoice(None, options.budget_nano, why)
        asked = options.reliability
        if asked is not None:
            some = [one for one in some if self._keeps(one, Fraction(repr(asked)))]
            if not some:
                said = f"nothing here is proved at a reliability of {asked:g}"
                return BundleChoice(None, options.budget_nano, said)
        return select_bundle(some, options.budget_nano, most_nano)

    def _keeps(self, one: ServedMode, asked: Fraction) -> bool:
        proved = one.reliability
        return proved is not None and proved >= asked and not self.why_ended(one)

    @property
    def _temperature(self) -> float:
        given = self.section.temperature
        return ChatAgent.temperature if given is None else given

    def _read(self, mode: str, path: Path) -> ServedBundle:
        bundle = bundles.load(path)
        runner = PolicyRunner(bundle, self.plan, self.task, system=self.system)
        return ServedBundle(mode, bundle, runner, certificate_mark(bundle.certificate))


def _changed(path: Path) -> float | None:
    try:
        return max(one.stat().st_mtime for one in (path, *path.iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return None

"""The policies of a gateway: which requests are their task, and which bundle decides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from farthing import plugins
from farthing.bundle import folder as bundles
from farthing.errors import InputError
from farthing.gateway.chat_agent import ChatAgent
from farthing.gateway.config import ServeConfig
from farthing.gateway.loaded import Chosen, Loaded, most_nano, within
from farthing.gateway.requests import ChatRequest, Wishes
from farthing.gateway.sections import PolicySection
from farthing.models.base import Model
from farthing.runtime.base import Agent
from farthing.runtime.job import Job, read_job, sold
from farthing.runtime.orchestrator import Orchestrator
from farthing.runtime.rounds import Independent, Plan
from farthing.runtime.system import system_of
from farthing.tasks.base import Question, Task
from farthing.traces.system import System, fingerprint

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
    tries: int | None = None
    """Most tries of a call, where nothing that is asked depends on what came before."""
    loaded: Mapping[str, Loaded] = field(default_factory=dict)
    """By mode, the cheapest first; replaced as a whole, since it is read while it is made."""
    looked: dict[str, float] = field(default_factory=dict)
    """By mode, when the files were written that were last looked at, damaged ones as well."""

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

    async def most_nano(self, request: ChatRequest) -> int | None:
        """Return the most that the policy can spend on a request; None: nothing bounds it."""
        question = Question("", text_of(request.messages[-1]))
        return None if self.tries is None else await most_nano(self.plan, question, self.tries)

    def choose(self, wishes: Wishes, most_nano: int | None = None) -> Chosen:
        """Return which bundle answers; a budget is rounded down to one that was calibrated.

        Args:
            wishes: of the request.
            most_nano: the most that can be spent on it; a budget of so much binds nothing.

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
            some = [one for one in some if one.reliability and one.reliability >= asked]
            if not some:
                said = f"nothing here is proved at a reliability of {float(asked):g}"
                return Chosen(None, wishes.budget_nano, said)
        return within(some, wishes.budget_nano, most_nano)

    @property
    def _temperature(self) -> float:
        given = self.section.temperature
        return ChatAgent.temperature if given is None else given

    def _read(self, mode: str, path: Path) -> Loaded:
        bundle = bundles.load(path)
        orchestrator = Orchestrator(bundle, self.plan, self.task, system=self.system)
        certified = bundle.certificate is not None and bundle.certificate.promises
        mark = fingerprint(bundle.certificate.to_json()) if bundle.certificate else ""
        return Loaded(
            mode,
            bundle,
            orchestrator,
            mark.removeprefix("sha256:") if certified else None,
        )


def open_policies(
    config: ServeConfig, models: Mapping[str, Model]
) -> tuple[dict[str, GatewayPolicy], list[Any]]:
    """Return the policies of a configuration, and what is to be closed after them.

    Args:
        config: of the gateway.
        models: by section.

    Raises:
        InputError: a job, a bundle or a prompt cannot be read.
    """
    found, closing = {}, []
    for name, section in config.policies.items():
        if section.job is None:
            policy = _of_pool(name, section, config, models)
        else:
            policy, opened = _of_job(name, section, config)
            closing += opened
        policy.load()
        found[name] = policy
    return found, closing


def pool_agents(
    names: Sequence[str],
    section: PolicySection,
    config: ServeConfig,
    models: Mapping[str, Model],
) -> tuple[ChatAgent, ...]:
    """Return agents of a policy's task, each of which asks as the client did."""
    most = section.max_tokens or config.serve.default_max_output
    temperature = ChatAgent.temperature if section.temperature is None else section.temperature
    return tuple(
        ChatAgent(models[name], name, str.strip, section.system, most, temperature)
        for name in names
    )


def text_of(message: Mapping[str, Any]) -> str:
    """Return what a message says in words.

    >>> text_of({"role": "user", "content": [{"type": "text", "text": "2 + 2?"}]})
    '2 + 2?'
    """
    content = message.get("content")
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _of_pool(
    name: str, section: PolicySection, config: ServeConfig, models: Mapping[str, Model]
) -> GatewayPolicy:
    task: Task = plugins.load("tasks", section.task)
    plan = Independent(pool_agents(section.pool, section, config, models), 1, task)
    system = system_of(plan, {one: sold(config.models, one) for one in section.pool})
    most = section.max_tokens or config.serve.default_max_output
    tried = pool_agents((*section.pool, *section.trial), section, config, models)
    tries = max(config.models.sections[one].patience.tries for one in section.pool)
    return GatewayPolicy(name, section, task, plan, system, most, tried, tries)


def _of_job(
    name: str, section: PolicySection, config: ServeConfig
) -> tuple[GatewayPolicy, list[Any]]:
    job: Job = read_job(Path(str(section.job)))
    recording, closing = job.open(workers=config.serve.workers)
    most = section.max_tokens or config.serve.default_max_output
    tried = tuple(agent for number, agent in recording.plan.acts() if number == 1)
    policy = GatewayPolicy(name, section, recording.task, recording.plan, job.system(), most, tried)
    return policy, list(closing)


def _changed(path: Path) -> float | None:
    """Return when a bundle was last written; None where there is none."""
    try:
        return max(one.stat().st_mtime for one in (path, *path.iterdir()))
    except (FileNotFoundError, NotADirectoryError):
        return None

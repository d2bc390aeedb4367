"""A collection as a TOML file says it, beside the models that it names (see `models/config.py`).

    task = "gsm8k"
    questions = "test.jsonl"
    limit = 200
    rounds = 4
    mode = "dialogue"

    [agents.base]
    model = "small"

    [agents.guide]
    model = "large"

In place of agents, `pool = ["small", "medium", "large"]` asks each of these models once. With
`mode = "samples"`, the base alone answers `rounds` times by itself, each time at its temperature.
With `[agents.thought]`, alone, a model that thinks answers at cuts of its thought. With
`mode = "replay"`, `questions` is a log, and each of its requests goes to the pool as it was logged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Literal

import msgspec

from farthing import plugins
from farthing.errors import ConfigError, InputError, UnknownNameError
from farthing.models.adaptive import Gate
from farthing.models.base import MAX_TOKENS, Model, Prompt
from farthing.models.config import ModelsConfig, ModelSection, models_from
from farthing.models.remote import RemoteSettings
from farthing.models.scripted import ScriptedModel
from farthing.models.thinking import AS_IT_IS, EFFORTS, split_name
from farthing.models.toml import convert, read_toml
from farthing.runtime.agents.base import AgentParts, AgentSection, BaseAgent, BaseSection, Positive
from farthing.runtime.base import Closable
from farthing.runtime.protocol import (
    Dialogue,
    Independent,
    Protocol,
    RecordingPlan,
    apart,
    sampling,
)
from farthing.runtime.system import Sold, flat, system_of
from farthing.tasks.base import Question, Task
from farthing.tasks.questions import load_questions
from farthing.tasks.templates import BUILT_IN, PromptTemplates
from farthing.traces.pool import THOUGHT
from farthing.traces.system import Setting, System, mark_of

AT_ONCE = 1_000
"""Questions under way at any moment."""
_NOT_SENT = frozenset(
    {"url", "key_env", "key_file", "price_provider", "timeout_s", "latency_s", "batch", "apis"}
    | {"provider_tools", "tool_uses"}
)
"""Settings of a model that leave its replies as they are."""
_IF_SAID = frozenset(
    {"reasoning_effort", "thinking_budget", "dialect", "max_output", "image_tokens"}
)
"""Settings that are none where a section does not give them, so that marks stay as they were."""


class JobSection(msgspec.Struct, frozen=True, kw_only=True):
    """The fields at the top of the file."""

    task: str
    questions: str
    limit: Positive | None = None
    seed: int | None = None
    split: Literal["train", "calibrate", "test"] | None = None
    rounds: Positive = 4
    mode: Literal["dialogue", "independent", "samples", "replay"] = "dialogue"
    agents: dict[str, AgentSection] = {}
    pool: list[str] = []
    max_tokens: Positive | None = None
    """Most output tokens of an answer of the pool; None: as an agent has it."""
    reference: str | None = None
    """Of a replay the logged model whose answers count; None: who is paid most."""
    prompts: str | None = None
    """Folder of prompts of your own."""
    at_once: Positive = AT_ONCE
    """Questions under way at any moment."""

    @property
    def searches(self) -> dict[str, str]:
        """Role to where its agent searches, of those that do."""
        found = ((role, getattr(agent, "search", None)) for role, agent in self.agents.items())
        return {role: search for role, search in found if search is not None}


ESCALATION = "escalation"
"""The role of the model that is asked where a policy abstains."""
_ALONE = frozenset({"independent", "samples"})
"""Modes in which agents answer by themselves."""
_SECTIONS = frozenset({*JobSection.__struct_fields__, "models", "limits", "prices"})


@dataclass(frozen=True)
class Job:
    """A collection that was read and checked; nothing is opened yet."""

    file: str
    section: JobSection
    models: ModelsConfig
    escalate: str | None = None
    """The model, a section `[models.NAME]`, that is asked where a policy abstains."""

    def escalating(self, name: str) -> "Job":
        """Return the job with a model to pass questions on to."""
        job = replace(self, models=self.models.with_efforts([name]), escalate=name)
        _check_models(job, {name})
        return job

    def at_efforts(self, efforts: Sequence[str]) -> "Job":
        """Return the job with models of its pool asked at several efforts each.

        Args:
            efforts: `low,medium` for every model of the pool, or `NAME=low,medium` for one; a
                number is a budget in tokens. What is said of one model several times adds up.

        Raises:
            InputError: it has no pool, or no such model, or a provider has no such effort.
        """
        pool = self.section.pool
        if not pool:
            raise InputError(f"{self.file}: efforts are of a pool of models; give one, as `pool`")
        said: dict[str, list[str]] = {}
        for one in efforts:
            name, _, some = one.rpartition("=")
            if name and name not in pool:
                raise UnknownNameError("model of the pool", name, pool)
            found = [effort.strip() for effort in some.split(",")]
            if not all(found):
                raise InputError(f"--efforts {one}: an effort is empty; write low,medium,high")
            for model in [name] if name else pool:
                said.setdefault(model, []).extend(found)
        names = [
            role
            for name in pool
            for role in dict.fromkeys(f"{name}@{effort}" for effort in said.get(name, ())) or [name]
        ]
        for wrong in (name for name in names if name not in pool and split_name(name)[1] is None):
            effort = wrong.rpartition("@")[2]
            known = f"{', '.join(EFFORTS)}, or a budget in tokens"
            raise InputError(f"'{effort}' is no effort; there are {known}")
        section = msgspec.structs.replace(self.section, pool=names)
        return replace(self, section=section, models=self.models.with_efforts(names))

    @property
    def at_once(self) -> int:
        """Questions under way at any moment, at most."""
        return self.section.at_once

    def likely_nano(self) -> Mapping[str, float]:
        """Return what a call of each role is likely to cost: nothing says so beforehand."""
        return {}

    def questions(self) -> list[Question]:
        """Load the questions; without accepted answers they can prove agreement alone."""
        section = self.section
        return load_questions(
            section.task,
            section.questions,
            limit=section.limit,
            seed=section.seed,
            split=section.split,
            graded=False,
        )

    def open(self, *, workers: int = 1) -> tuple[RecordingPlan, list[Closable]]:
        """Open the models in use; return what is to be recorded, and what to close afterwards."""
        used = {*self.section.pool, *(agent.model for agent in self.section.agents.values())}
        used |= {self.escalate} if self.escalate else set()
        sections = {name: self.models.sections[name] for name in sorted(used)}
        config = ModelsConfig(sections, self.models.limits, self.models.prices, self.models.file)
        gate = Gate(self.at_once)
        models = config.open(workers=workers, gate=gate)
        for model in models.values():
            model.largest_cost_nano(Prompt(()))
        task: Task = plugins.load("tasks", self.section.task)
        closing: list[Closable] = [*models.values()]
        protocol = self._protocol(AgentParts(models, self._prompts(), closing), task)
        last = self.escalate and BaseAgent(models[self.escalate], self._prompts(), role=ESCALATION)
        roles = [*self._roles(), *([(ESCALATION, self.escalate)] if self.escalate else [])]
        parameters = {role: sent_mark(self.models, name) for role, name in roles}
        return RecordingPlan(protocol, task, parameters, last or None, gate), closing

    def system(self) -> System:
        """Return what the job's traces are made with; no model is opened."""
        names: dict[str, Model] = {
            name: ScriptedModel({}, name=section.settings.model)
            for name, section in self.models.sections.items()
        }
        task: Task = plugins.load("tasks", self.section.task)
        protocol = self._protocol(AgentParts(names, self._prompts()), task)
        searches = self.section.searches
        parts = {role: sold(self.models, name, searches.get(role)) for role, name in self._roles()}
        return system_of(protocol, parts)

    def _prompts(self) -> PromptTemplates:
        return PromptTemplates(Path(self.section.prompts)) if self.section.prompts else BUILT_IN

    def _protocol(self, parts: AgentParts, task: Task) -> Protocol:
        section = self.section
        if section.pool:
            most = section.max_tokens or MAX_TOKENS
            pool = tuple(
                BaseAgent(parts.models[name], parts.prompts, name, most) for name in section.pool
            )
            return Independent(pool, 1, task)
        alone = section.mode in _ALONE
        order = sorted(section.agents, key=lambda name: (name != "base", name != "guide"))
        agents = tuple(section.agents[name].agent(name, parts) for name in order)
        if alone:
            agents = sampling(agents) if section.mode == "samples" else apart(agents)
            return Independent(agents, section.rounds, task)
        thought = section.agents.get(*THOUGHT)
        return Dialogue(agents, len(getattr(thought, "cuts", ())) or section.rounds)

    def _roles(self) -> list[tuple[str, str]]:
        agents = self.section.agents.items()
        return [*((n, n) for n in self.section.pool), *((n, agent.model) for n, agent in agents)]


def sold(models: ModelsConfig, name: str, search: str | None = None) -> Sold:
    """Return what goes with every call to a model, what is searched for it, and what it costs."""
    section = models.sections[name]
    sent = {key: value for key, value in _sent(section).items() if key != "model"}
    price = section.settings.price(models.prices)
    remote = section.settings if isinstance(section.settings, RemoteSettings) else None
    extra, omit = (remote.added, tuple(remote.left_out)) if remote else ({}, ())
    return Sold(flat(sent) | {"search": _searched(search)}, str(price), extra, omit)


def sent_mark(models: ModelsConfig, name: str) -> str:
    """Return a mark of what is sent to a model with every call and that no prompt shows."""
    sent = _sent(models.sections[name])
    return sha256(msgspec.json.encode(sent, order="sorted")).hexdigest()[:16]


def _sent(section: ModelSection) -> dict[str, Any]:
    """Return settings that a reply depends on; paths as the file has them, on any machine alike."""
    builtins = {**msgspec.to_builtins(section.settings), **section.written}
    return {
        key: value
        for key, value in builtins.items()
        if key not in _NOT_SENT and not (key in _IF_SAID and value is None)
    }


def _searched(search: str | None) -> Setting:
    if search in {None, "own", "wikipedia"}:
        return search
    try:
        with Path(str(search)).open("rb") as corpus:
            return mark_of(file_digest(corpus, "sha256").hexdigest())
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise InputError(f"{search}: cannot be read ({problem}); check the path") from None


def read_job(file: Path) -> Job:
    """Read a job; paths in it are relative to its folder."""
    tables = read_toml(file)
    for unknown in tables.keys() - _SECTIONS:
        raise ConfigError(
            str(file), unknown, f"is unknown; there are {', '.join(sorted(_SECTIONS))}"
        )
    alone = str(tables.get("mode")) in _ALONE
    agents = _read_agents(tables.get("agents", {}), str(file), alone=alone)
    section = convert(tables | {"agents": {}}, JobSection, str(file))
    section = msgspec.structs.replace(section, agents=agents)
    folder = file.absolute().parent
    models = models_from(tables, str(file), folder)
    named = (*section.pool, *(agent.model for agent in section.agents.values()))
    if "rounds" in tables and not section.agents.keys().isdisjoint(THOUGHT):
        problem = "is the number of cuts under [agents.thought]; leave it out"
        raise ConfigError(str(file), "rounds", problem)
    job = Job(str(file), _placed(section, folder), models.with_efforts(named))
    _check(job)
    return job


def _placed(section: JobSection, folder: Path) -> JobSection:
    placed: dict[str, Any] = {}
    if not section.questions.startswith("dataset:"):
        placed["questions"] = str(folder / section.questions)
    if section.prompts is not None:
        placed["prompts"] = str(folder / section.prompts)
    placed["agents"] = section.agents | {
        name: msgspec.structs.replace(section.agents[name], search=str(folder / search))
        for name, search in section.searches.items()
        if search not in {"own", "wikipedia"}
    }
    return msgspec.structs.replace(section, **placed)


def _check(job: Job) -> None:
    section = job.section
    if bool(section.pool) == bool(section.agents):
        raise ConfigError(job.file, "agents", "give either agents or a pool of models")
    if section.mode == "replay" and not section.pool:
        raise ConfigError(job.file, "pool", "is missing; a replay goes to a pool of models")
    _check_agents(job)
    if len(set(section.pool)) < len(section.pool):
        raise ConfigError(job.file, "pool", "names a model twice")
    _check_models(job, {*section.pool, *(agent.model for agent in section.agents.values())})
    _check_limit(job)


def _check_agents(job: Job) -> None:
    section = job.section
    if not section.agents.keys().isdisjoint(THOUGHT):
        _check_thought(job)
    elif section.mode == "samples":
        _check_samples(job)
    elif section.agents and not {"base", "guide"} <= section.agents.keys():
        problem = (
            'needs [agents.base] and [agents.guide]; the base alone is asked in mode "samples"'
        )
        raise ConfigError(job.file, "agents", problem)
    for name in section.agents:
        if not _is_role(name, alone=section.mode in _ALONE):
            problem = "is no role; in a dialogue there are base, guide, policy-NAME, exit-ROLE"
            raise ConfigError(job.file, f"agents.{name}", problem)


def _check_limit(job: Job) -> None:
    section = job.section
    if section.max_tokens is not None and (section.agents or section.mode == "replay"):
        problem = (
            "is of a pool alone; give it in [agents.NAME], and a replay has that of each request"
        )
        raise ConfigError(job.file, "max_tokens", problem)


def _check_samples(job: Job) -> None:
    section = job.section
    if section.agents.keys() != {"base"}:
        raise ConfigError(job.file, "agents", 'needs [agents.base] alone in mode "samples"')
    if section.rounds == 1:
        raise ConfigError(job.file, "rounds", "is 1; it says how many samples, at least 2")
    if section.agents["base"].temperature == 0:
        problem = "is 0, at which all samples are one; give more, or nothing for 1"
        raise ConfigError(job.file, "agents.base.temperature", problem)


def _check_thought(job: Job) -> None:
    section = job.section
    if len(section.agents) > 1 or section.mode != "dialogue":
        problem = "stands alone and has no `mode`: its rounds are the cuts of one thought"
        raise ConfigError(job.file, "agents.thought", problem)
    named = section.agents[THOUGHT[0]].model
    model = job.models.sections.get(named)
    if model is not None and getattr(model.settings, "thinking", AS_IT_IS).tokens:
        problem = f"is {named}, with an effort or a budget of its own; the cuts say how long"
        raise ConfigError(job.file, "agents.thought.model", problem)
    if model is not None and getattr(model.settings, "continued", {}) is None:
        problem = (
            f"is {named}, whose endpoint does not go on from a message that has begun; stop it by "
            'efforts or budgets, or say dialect = "vllm" or "llama.cpp" if it is one of these'
        )
        raise ConfigError(job.file, "agents.thought.model", problem)


def _check_models(job: Job, names: set[str]) -> None:
    for name in sorted(names - job.models.sections.keys()):
        raise ConfigError(job.file, "models", f"lacks a section [models.{name}]")


def _read_agents(tables: Any, file: str, *, alone: bool) -> dict[str, AgentSection]:
    """Read the table `agents` of a job; `alone`: base and guide answer by themselves.

    Which kind a section is for follows from its name, from `search`, and from the job's mode.
    """
    if not isinstance(tables, Mapping):
        raise ConfigError(file, "agents", "must be a table, such as [agents.base]")
    return {name: _read_agent(name, table, file, alone=alone) for name, table in tables.items()}


def _read_agent(name: str, table: Any, file: str, *, alone: bool) -> AgentSection:
    field = f"agents.{name}"
    if not isinstance(table, Mapping):
        raise ConfigError(file, field, "must be a table")
    if not _is_role(name, alone=alone):
        return BaseSection(model=str(table.get("model", "")))  # the job refuses it
    kind = _kind_of(name, searches="search" in table, alone=alone)
    *fields, last = sorted(kind.__struct_fields__, key=lambda f: f not in {"model", "search"})
    if foreign := [f"`{given}`" for given in table if given not in kind.__struct_fields__]:
        problem = f"takes no {', '.join(foreign)}; it takes {', '.join(fields)} and {last}"
        raise ConfigError(file, field, problem)
    section = convert(dict(table), kind, file, field)
    section.check(file, field)
    return section


def _kind_of(name: str, *, searches: bool, alone: bool) -> type[AgentSection]:
    kind = name.partition("-")[0]
    if kind == "base" or (kind == "guide" and alone):
        kind = "react" if searches else "base"
    found: type[AgentSection] = plugins.load("sections", kind)
    return found


def _is_role(name: str, *, alone: bool) -> bool:
    """Return whether a job can have an agent of this name; `alone` as in `_read_agents`."""
    named = {"base", "guide", *THOUGHT}
    return name in named or (not alone and name.startswith(("policy-", "exit-")))

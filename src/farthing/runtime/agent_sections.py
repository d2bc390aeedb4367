"""The agents of a job, as its sections `[agents.NAME]` say them.

    [agents.guide]
    model = "large"
    samples = 3

Each kind of agent takes fields of its own (`takes`); what a section leaves out is as the agent has
it. Which kind a section is for follows from its name, from `search`, and from the job's mode.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from farthing import plugins
from farthing.errors import ConfigError
from farthing.methods.agents.base import MONEY, TOKENS
from farthing.methods.cards import system
from farthing.models.base import Model
from farthing.models.toml import convert
from farthing.money import nano_from_usd
from farthing.runtime.base import Agent
from farthing.runtime.base_agent import BaseAgent
from farthing.runtime.guide_agent import GuideAgent
from farthing.runtime.llm_agents import LlmExitAgent, LlmPolicyAgent
from farthing.runtime.react_agent import ReactAgent
from farthing.tasks.local_search import LocalSearch, own_paragraphs, read_corpus
from farthing.tasks.templates import Prompts
from farthing.tasks.tools import Toolbox, always
from farthing.tasks.wikipedia import Wikipedia

Positive = Annotated[int, msgspec.Meta(ge=1)]
DEFAULT_TRACKER = "budget-tracker"
"""What `tracker = true` means."""
_RESOURCES = ("search", TOKENS, MONEY)
"""What a call with tools can have a budget of."""
Kind = Literal["base", "react", "guide", "policy", "exit"]

_TAKES: dict[Kind, tuple[str, ...]] = {
    "base": ("max_tokens", "temperature", "top_logprobs"),
    "react": ("max_tokens", "temperature", "max_steps", "budget", "tracker", "verify"),
    "guide": ("max_tokens", "temperature", "samples", "top_logprobs"),
    "policy": ("max_tokens", "temperature", "coverage"),
    "exit": ("max_tokens", "temperature"),
}
"""What is handed to each kind of agent, beside its model, its prompts and its tools."""


class AgentSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One section `[agents.NAME]`; what is None is as the agent has it."""

    model: str
    """Name of a section `[models.NAME]`."""
    max_tokens: Positive | None = None
    """Most output tokens of a reply."""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    """Of every round."""
    search: str | None = None
    """Search for the base: `own` (the question's paragraphs), `wikipedia`, or a corpus file."""
    max_steps: Positive | None = None
    """Most prompts of one call with tools."""
    budget: dict[str, Annotated[float, msgspec.Meta(ge=0)]] | None = None
    """Of one call with tools: `search` (uses), `tokens`, `usd`."""
    tracker: bool | str | None = None
    """Whether it is told what of the budget is used and left; or by which registered system."""
    verify: bool | None = None
    """Whether an answer is verified while steps and budget are left."""
    samples: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    """How often a guide without log-probabilities is asked again."""
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    """Alternatives to each token to ask for; 0 asks for no log-probabilities."""
    coverage: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    """What an LLM as the policy is told to aim at."""


def read_agents(tables: Any, file: str, *, alone: bool) -> dict[str, AgentSection]:
    """Read the table `agents` of a job.

    Args:
        tables: as the file has it.
        file: the file's name, for messages.
        alone: whether base and guide answer by themselves.

    Raises:
        ConfigError: a field is missing, out of range, or means nothing to an agent; the message
            names the agent and the fields.
    """
    if not isinstance(tables, Mapping):
        raise ConfigError(file, "agents", "must be a table, such as [agents.base]")
    return {name: _read(name, table, file, alone=alone) for name, table in tables.items()}


def _read(name: str, table: Any, file: str, *, alone: bool) -> AgentSection:
    field = f"agents.{name}"
    if not isinstance(table, Mapping):
        raise ConfigError(file, field, "must be a table")
    if not is_role(name, alone=alone):
        return convert(dict(table), AgentSection, file, field)  # the job refuses it
    kind = _kind(name, searches="search" in table, alone=alone)
    known = ("model", *(["search"] if kind in {"base", "react"} else []), *_TAKES[kind])
    if foreign := [f"`{given}`" for given in table if given not in known]:
        raise ConfigError(file, field, f"takes no {', '.join(foreign)}; it takes {_joined(known)}")
    section = convert(dict(table), AgentSection, file, field)
    _check_budget(section, file, field)
    return section


def _check_budget(section: AgentSection, file: str, field: str) -> None:
    for name, most in (section.budget or {}).items():
        if name not in _RESOURCES:
            raise ConfigError(
                file, f"{field}.budget", f"takes no `{name}`; it takes {_joined(_RESOURCES)}"
            )
        if name != MONEY and most != int(most):
            raise ConfigError(file, f"{field}.budget.{name}", f"is {most:g}; give a whole number")
    if section.tracker and not section.budget:
        raise ConfigError(
            file, f"{field}.tracker", "has nothing to tell; add `budget`, such as { search = 5 }"
        )
    if isinstance(section.tracker, str):
        plugins.load("agents", section.tracker)  # an unknown one is refused as such


def _budgeted(said: dict[str, Any]) -> dict[str, Any]:
    """Return a section's fields with its budget in whole numbers, and its tracker by itself."""
    given = dict(said)
    if "budget" in given:
        amounts = given["budget"].items()
        given["budget"] = {k: nano_from_usd(v) if k == MONEY else int(v) for k, v in amounts}
    if "tracker" in given:
        name = DEFAULT_TRACKER if given["tracker"] is True else given["tracker"]
        given["tracker"] = system("agent", name) if name else None
    return given


def is_role(name: str, *, alone: bool) -> bool:
    """Return whether a job can have an agent of this name; `alone` as in `read_agents`."""
    return name in {"base", "guide"} or (not alone and name.startswith(("policy-", "exit-")))


def _joined(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _kind(name: str, *, searches: bool, alone: bool) -> Kind:
    if name.startswith("policy-"):
        return "policy"
    if name.startswith("exit-"):
        return "exit"
    if name == "guide" and not alone:
        return "guide"
    return "react" if searches else "base"


@dataclass(frozen=True)
class Parts:
    """What agents are made of."""

    models: Mapping[str, Model]
    prompts: Prompts
    toolbox: Callable[[str], Toolbox]
    """What is searched to the tools for it."""


def toolboxes(wikipedia: Wikipedia | None) -> Callable[[str], Toolbox]:
    """Return what `search` stands for; without Wikipedia, any other name is a corpus file."""

    def toolbox(search: str) -> Toolbox:
        if search == "own":
            return own_paragraphs()
        if wikipedia is not None and search == "wikipedia":
            return always(wikipedia)
        return always(LocalSearch(read_corpus(search)))

    return toolbox


def agent_of(name: str, section: AgentSection, parts: Parts, *, alone: bool) -> Agent:
    """Return the agent of a section; `alone` as in `read_agents`."""
    kind = _kind(name, searches=section.search is not None, alone=alone)
    given = {field: getattr(section, field) for field in _TAKES[kind]}
    said: dict[str, Any] = {field: value for field, value in given.items() if value is not None}
    model, prompts = parts.models[section.model], parts.prompts
    if kind == "policy":
        return LlmPolicyAgent(model, name.removeprefix("policy-"), prompts=prompts, **said)
    if kind == "exit":
        return LlmExitAgent(model, name.removeprefix("exit-"), prompts, **said)
    if kind == "guide":
        return GuideAgent(model, prompts, **said)
    if section.search is not None:
        return ReactAgent(model, parts.toolbox(section.search), prompts, name, **_budgeted(said))
    return BaseAgent(model, prompts, name, **said)

"""The agents of a job, as its sections `[agents.NAME]` say them: a tagged union, a file a kind.

    [agents.guide]
    model = "large"
    samples = 3

Which kind a section is for follows from its name, from `search`, and from the job's mode.
"""

from collections.abc import Callable, Mapping
from typing import Any

from farthing.errors import ConfigError
from farthing.models.toml import convert
from farthing.runtime.agents.base import AgentSection, BaseSection
from farthing.runtime.agents.guide import GuideSection
from farthing.runtime.agents.llm import ExitSection, PolicyAgentSection
from farthing.runtime.agents.react import ReactSection
from farthing.runtime.agents.thinking import ThinkingSection
from farthing.tasks.tools import LocalSearch, Toolbox, always, own_paragraphs, read_corpus
from farthing.tasks.wikipedia import Wikipedia
from farthing.traces.thinking import THOUGHT

JobAgent = (
    BaseSection | ReactSection | GuideSection | PolicyAgentSection | ExitSection | ThinkingSection
)
"""A section, whichever its kind."""


def read_agents(tables: Any, file: str, *, alone: bool) -> dict[str, AgentSection]:
    """Read the table `agents` of a job; `alone`: base and guide answer by themselves."""
    if not isinstance(tables, Mapping):
        raise ConfigError(file, "agents", "must be a table, such as [agents.base]")
    return {name: _read(name, table, file, alone=alone) for name, table in tables.items()}


def _read(name: str, table: Any, file: str, *, alone: bool) -> AgentSection:
    field = f"agents.{name}"
    if not isinstance(table, Mapping):
        raise ConfigError(file, field, "must be a table")
    if not is_role(name, alone=alone):
        return BaseSection(model=str(table.get("model", "")))  # the job refuses it
    kind = _kind(name, searches="search" in table, alone=alone)
    *fields, last = sorted(kind.__struct_fields__, key=lambda f: f not in {"model", "search"})
    if foreign := [f"`{given}`" for given in table if given not in kind.__struct_fields__]:
        problem = f"takes no {', '.join(foreign)}; it takes {', '.join(fields)} and {last}"
        raise ConfigError(file, field, problem)
    section = convert(dict(table), kind, file, field)
    section.check(file, field)
    return section


def _kind(name: str, *, searches: bool, alone: bool) -> type[AgentSection]:
    if name in THOUGHT:
        return ThinkingSection
    if name.startswith("policy-"):
        return PolicyAgentSection
    if name.startswith("exit-"):
        return ExitSection
    if name == "guide" and not alone:
        return GuideSection
    return ReactSection if searches else BaseSection


def is_role(name: str, *, alone: bool) -> bool:
    """Return whether a job can have an agent of this name; `alone` as in `read_agents`."""
    named = {"base", "guide", *THOUGHT}
    return name in named or (not alone and name.startswith(("policy-", "exit-")))


def toolboxes(wikipedia: Wikipedia | None) -> Callable[[str], Toolbox]:
    """Return what `search` stands for; without Wikipedia, any other name is a corpus file."""

    def toolbox(search: str) -> Toolbox:
        if search == "own":
            return own_paragraphs()
        if wikipedia is not None and search == "wikipedia":
            return always(wikipedia)
        return always(LocalSearch(read_corpus(search)))

    return toolbox

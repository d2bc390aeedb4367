"""The agents of a job, as its sections `[agents.NAME]` say them: a plugin a kind.

    [agents.guide]
    model = "large"
    samples = 3

Which kind a section is for follows from its name, from `search`, and from the job's mode.
"""

from collections.abc import Mapping
from typing import Any

from farthing import plugins
from farthing.errors import ConfigError
from farthing.models.toml import convert
from farthing.runtime.agents.base import AgentSection, BaseSection
from farthing.traces.thinking import THOUGHT


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
    kind = name.partition("-")[0]
    if kind == "base" or (kind == "guide" and alone):
        kind = "react" if searches else "base"
    found: type[AgentSection] = plugins.load("sections", kind)
    return found


def is_role(name: str, *, alone: bool) -> bool:
    """Return whether a job can have an agent of this name; `alone` as in `read_agents`."""
    named = {"base", "guide", *THOUGHT}
    return name in named or (not alone and name.startswith(("policy-", "exit-")))

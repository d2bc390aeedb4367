"""What live agents are made of, and what is known of the system behind recorded traces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from farthing.errors import InputError
from farthing.runtime.base import Agent
from farthing.runtime.rounds import Plan
from farthing.traces.arrays import TraceArrays
from farthing.traces.system import Part, Setting, System, changes, fingerprint

REVIEW = "review"
"""The prompt that shows an agent its earlier rounds."""


@dataclass(frozen=True)
class Sold:
    """What is known of a role's model and tools beside its agent."""

    settings: dict[str, Setting]
    price: str


NOTHING_SOLD: Mapping[str, Sold] = {}


def system_of(plan: Plan, sold: Mapping[str, Sold] = NOTHING_SOLD) -> System:
    """Return the system that the agents of a plan are.

    Args:
        plan: the agents.
        sold: role to what goes with its calls and what they cost; unknown where it is left out.
    """
    return {
        agent.role: _part(agent, sold.get(agent.role), alone=plan.independent)
        for number, agent in plan.acts()
        if number == 1
    }


def _part(agent: Agent, sold: Sold | None, *, alone: bool) -> Part:
    used = getattr(agent, "uses", ())
    prompts = getattr(agent, "prompts", {})
    return Part(
        model=agent.model.name,
        kind=type(agent).__name__,
        agent=_numbers(agent),
        prompts={
            name: fingerprint(prompts[name].messages)
            for name in used
            if not (alone and name == REVIEW)
        },
        settings=None if sold is None else sold.settings,
        price=None if sold is None else sold.price,
    )


def _numbers(agent: Any) -> dict[str, Setting]:
    if not is_dataclass(agent):
        return {}
    values = {field.name: getattr(agent, field.name) for field in fields(agent)}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def flat(settings: Mapping[str, Any]) -> dict[str, Setting]:
    """Return settings as a system holds them: numbers as they are, all else as fingerprints.

    Numbers of an inner table have names of their own, so that a change of one can be named.

    >>> sorted(flat({"omit": [], "extra": {"temperature": 0.5}}))
    ['extra', 'extra.temperature', 'omit']
    """
    found: dict[str, Setting] = {}
    for name, value in settings.items():
        rest = value
        if isinstance(value, Mapping):
            numbers = {key: v for key, v in value.items() if isinstance(v, int | float)}
            found |= {f"{name}.{key}": number for key, number in numbers.items()}
            rest = {key: v for key, v in value.items() if key not in numbers}
        plain = rest is None or isinstance(rest, int | float)
        found[name] = rest if plain else fingerprint(rest)
    return found


@dataclass(frozen=True)
class Behind:
    """What is known of the system behind some traces."""

    system: System | None
    note: str = ""
    """Why it is not known, and what follows."""


def behind(
    traces: Path, recorded: Sequence[System | None], job: Path | None, declared: System | None
) -> Behind:
    """Return the one system that traces were made with, if there is one.

    Args:
        traces: their file.
        recorded: every system that the file tells of, None for traces of which it tells nothing.
        job: the job that is said to have made them.
        declared: its system.

    Raises:
        InputError: what is said is not what was recorded.
    """
    known = [system for system in recorded if system is not None]
    if declared is not None:
        for other in (found for system in known if (found := changes(declared, system))):
            raise InputError(
                f"{job}: did not make all of {traces}, which was recorded with another system: "
                f"{', '.join(other)}; leave --job out"
            )
        return Behind(declared)
    if len(known) > 1:
        return Behind(
            None,
            f"{traces} was collected under {len(known)} systems, so the bundle holds none of them "
            "and a changed prompt, parameter or price will not be noticed; between the first two "
            f"changed: {', '.join(changes(*known[:2]))}",
        )
    if recorded == known and known:
        return Behind(known[0])
    return Behind(
        None,
        f"{traces} does not say what all of it was made with, so a changed prompt, parameter or "
        "price goes unnoticed: name its job with --job",
    )


def check_declared(job: Path, system: System, traces: TraceArrays) -> None:
    """Refuse a job that cannot have made some traces.

    Raises:
        InputError: a role is missing, or its model is another.
    """
    for role, model in zip(traces.roles, traces.models, strict=True):
        if role not in system:
            raise InputError(
                f"{job}: has no role '{role}', and these traces do; name the job that made them"
            )
        if model not in {"", system[role].model}:
            raise InputError(
                f"{job}: its {role} is the model {system[role].model}, and in these traces it is "
                f"{model}; name the job that made them"
            )

"""What live agents are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from msgspec.structs import replace

from farthing.runtime.base import Agent
from farthing.runtime.protocol import Protocol
from farthing.tasks.text import TEXT
from farthing.traces.system import (
    RoleSetup,
    SentRequest,
    Setting,
    System,
    fingerprint,
    parameters_of,
    usual_name,
)

REVIEW = "review"
"""The prompt that shows an agent its earlier rounds."""


@dataclass(frozen=True)
class Sold:
    """What is known of a role's model and tools beside its agent."""

    settings: dict[str, Setting]
    price: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that its section adds to every request, or replaces there."""
    omit: tuple[str, ...] = ()
    """Parameters that its section leaves out of every request."""

    def parameters(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a call asks for beside its text, given what its agent does."""
        replaced = {usual_name(name) for name in (*self.extra, *self.omit)}
        kept = {name: value for name, value in own.items() if name not in replaced}
        added = {name: value for name, value in self.extra.items() if name not in self.omit}
        return kept | parameters_of(added)


NOTHING_SOLD: Mapping[str, Sold] = {}


def system_of(protocol: Protocol, sold: Mapping[str, Sold] = NOTHING_SOLD) -> System:
    """Return the system that the agents of a protocol are; what they cost may be unknown."""
    once = protocol.independent and all(number == 1 for number, _ in protocol.turns())
    return {
        agent.role: _part(
            agent,
            sold.get(agent.role),
            _sent(agent, protocol, sold.get(agent.role)) if once else None,
            alone=protocol.independent,
        )
        for number, agent in protocol.turns()
        if number == 1
    }


def _sent(agent: Agent, protocol: Protocol, sold: Sold | None) -> SentRequest | None:
    """Return what the one call of an agent sends; None where its agent does not say.

    Tasks but plain text find their answer in a whole reply, so that it makes no difference there.
    """
    sent: SentRequest | None = getattr(agent, "sent", None)
    if sent is None:
        return None
    if sent.reads == "the whole reply" and getattr(protocol, "task", TEXT).name != TEXT.name:
        sent = replace(sent, reads="an answer line")
    if sold is None:
        return sent
    asked_for = {
        name: value if isinstance(value, str | int | float | None) else fingerprint(value)
        for name, value in sold.parameters(sent.parameters or {}).items()
    }
    return replace(sent, parameters=asked_for)


def _part(agent: Agent, sold: Sold | None, sent: SentRequest | None, *, alone: bool) -> RoleSetup:
    used = getattr(agent, "uses", ())
    prompts = getattr(agent, "prompts", {})
    return RoleSetup(
        model=agent.model.name,
        kind=type(agent).__name__,
        agent=_numbers(agent),
        prompts={
            name: fingerprint(_form(prompts[name]))
            for name in used
            if not (alone and name == REVIEW)
        },
        settings=None if sold is None else sold.settings,
        price=None if sold is None else sold.price,
        sent=sent,
    )


def _form(prompt: Any) -> Any:
    """Return what a prompt is told by: its messages, and that they hold a question as it is."""
    whole = getattr(prompt, "whole", False)
    return (*prompt.messages, "as it is") if whole else prompt.messages


def _numbers(agent: Any) -> dict[str, Setting]:
    if not is_dataclass(agent):
        return {}
    values = {field.name: getattr(agent, field.name) for field in fields(agent)}
    found = {name: value for name, value in values.items() if isinstance(value, int | float)}
    more: Mapping[str, Setting] = getattr(agent, "marks", dict)()
    return found | dict(more)


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

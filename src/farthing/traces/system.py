"""What traces are made with: for each role the model, its parameters, prompts and price.

A certificate is about such a system, and ends with it. So collected traces remember theirs, a
bundle takes it over, and whoever answers under the bundle compares.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import msgspec

Setting = str | int | float | bool | None
_MARK = "sha256:"


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who answers in one role."""

    model: str
    """Name of the model."""
    kind: str
    """What kind of agent it is."""
    agent: dict[str, Setting]
    """The numbers that the agent sends or acts by, such as `max_tokens`."""
    prompts: dict[str, str]
    """Fingerprint of each prompt that it uses, by name."""
    settings: dict[str, Setting] | None = None
    """What goes with every call to the model, and what is searched; None where nobody knows."""
    price: str | None = None
    """Every figure of the price, in US dollars; None where nobody knows."""


System = dict[str, Part]
"""Role to who answers in it."""


def fingerprint(content: Any) -> str:
    """Return what tells a text, or JSON values, from any other.

    >>> fingerprint("Answer the question.")
    'sha256:2f04bc9067cd47af'
    """
    encoded = msgspec.json.encode(content, order="sorted")
    return mark_of(sha256(encoded).hexdigest())


def mark_of(digest: str) -> str:
    """Return a SHA-256 as systems hold it."""
    return _MARK + digest[:16]


def changes(theirs: Mapping[str, Part], ours: Mapping[str, Part]) -> list[str]:
    """Name what differs between two systems, in words; what one of them does not know does not.

    >>> from msgspec.structs import replace
    >>> one = Part(model="m", kind="A", agent={"max_tokens": 64}, prompts={"base": "sha256:1"})
    >>> other = replace(one, agent={"max_tokens": 32}, prompts={"base": "sha256:2"})
    >>> changes({"base": one}, {"base": other})
    ['max_tokens of base (32 instead of 64)', "the prompt 'base' of base"]
    """
    found: list[str] = []
    for role in sorted(theirs.keys() | ours.keys()):
        if role in theirs and role in ours:
            found += _changed(role, theirs[role], ours[role])
        else:
            found.append(f"the role {role}, which is new" if role in ours else f"the role {role}")
    return found


def _changed(role: str, theirs: Part, ours: Part) -> Iterator[str]:
    if theirs.kind != ours.kind:  # whose numbers and prompts are others
        yield f"the agent of {role}{_values(theirs.kind, ours.kind)}"
    else:
        for name, values in _different(theirs.agent, ours.agent):
            yield f"{name} of {role}{values}"
        for name, _ in _different(theirs.prompts, ours.prompts):
            yield f"the prompt '{name}' of {role}"
    if theirs.model != ours.model:  # whose settings and price are others
        yield f"the model of {role}{_values(theirs.model, ours.model)}"
    else:
        yield from _sold_otherwise(role, theirs, ours)


def _sold_otherwise(role: str, theirs: Part, ours: Part) -> Iterator[str]:
    if theirs.settings is not None and ours.settings is not None:
        for name, values in _different(theirs.settings, ours.settings):
            yield f"{name} of {role}{values}"
    if None not in {theirs.price, ours.price} and theirs.price != ours.price:
        yield f"the price of {role}'s model {ours.model}{_values(theirs.price, ours.price)}"


def _different(
    theirs: Mapping[str, Setting], ours: Mapping[str, Setting]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each entry that differs, and its two values."""
    for name in sorted(theirs.keys() | ours.keys()):
        one, other = theirs.get(name), ours.get(name)
        if one != other:
            yield name, _values(one, other)


def _values(theirs: Setting, ours: Setting) -> str:
    """Say both values, unless they are fingerprints, which say nothing to a reader."""
    if any(str(value).startswith(_MARK) for value in (theirs, ours)):
        return ""
    before, now = ("nothing" if value is None else str(value) for value in (theirs, ours))
    return f" ({now} instead of {before})"

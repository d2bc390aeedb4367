"""What traces are made with: for each role the model, its parameters, prompts and price.

A certificate is about such a system, and ends with it. So collected traces remember theirs, logs
say what their requests were sent with, a bundle takes it over, and whoever answers under the bundle
compares. Agents of one kind are compared by all that they are; where the kinds differ, or a log
knows of none, what counts is what a call sends.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec

from farthing.traces.parameters import Setting, unlike

_MARK = "sha256:"
Provenance = Literal["same", "changed", "unknown"]
"""Whether those who answer are asked as those in the traces were: they are, or are not, or nobody
recorded how those were asked, which is not the same as the same."""
LOGGED = "a log"
"""The kind of who answered in a log: nobody knows more than what was sent."""
UNSAID = "unsaid"
"""Among system prompts: some questions do not say theirs."""
QUESTION = "{question}"
"""Stands for the question in the messages around it."""
Message = tuple[str, str]
"""Who speaks, and what is said."""


class SentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call by itself sends beside its question; None is what nobody knows."""

    system: tuple[str, ...] | None = None
    """Fingerprints of the system prompts, which may be empty texts; several where questions of one
    recording were asked with several."""
    around: str | None = None
    """Fingerprint of the messages that are no system prompt, with a place for the question."""
    parameters: dict[str, Setting] | None = None
    """Name to what was asked for, `SEVERAL` where that was not one value, None where nobody knows;
    what is left out is as the provider has it."""
    reads: Literal["an answer line", "the whole reply"] | None = None
    """Where the answer is read."""
    longest: int | None = None
    """Most output tokens of a recorded reply."""


class RoleSetup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    sent: SentRequest | None = None
    """What its call sends, where it makes one by itself; None where that is more than one prompt,
    or nobody knows."""


System = dict[str, RoleSetup]
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


def prompt_mark(text: str) -> str:
    """Return the fingerprint of a prompt, white space around it aside; one that is one stays.

    >>> mark = prompt_mark("Be brief. ")
    >>> mark == prompt_mark("Be brief.") == prompt_mark(mark)
    True
    """
    return text if text.startswith(_MARK) else fingerprint(text.strip())


def sent_as(
    messages: Sequence[Message],
    parameters: Mapping[str, Setting],
    reads: Literal["an answer line", "the whole reply"],
    *,
    quoted: bool = False,
) -> SentRequest:
    """Return what a call sends.

    Args:
        messages: with `QUESTION` in the place of the question.
        parameters: what is asked for beside them.
        reads: where the answer is read.
        quoted: whether the question is sent between marks.
    """
    system = "\n\n".join(text for who, text in messages if who == "system")
    others = [[who, text] for who, text in messages if who != "system"]
    return SentRequest(
        system=(prompt_mark(system),),
        around=fingerprint([others, "quoted"] if quoted else others),
        parameters=dict(parameters),
        reads=reads,
    )


ALONE = fingerprint([["user", QUESTION]])
"""What stands around a question that is sent alone, after a system prompt at most."""


def unrecorded(system: System | None) -> tuple[str, ...]:
    """Name what nobody knows of how the calls of a system were asked; nothing where all is known.

    >>> sent = SentRequest(system=("sha256:1",), around=ALONE)
    >>> part = RoleSetup(model="m", kind=LOGGED, agent={}, prompts={}, sent=sent)
    >>> unrecorded(None), unrecorded({"m": part})
    (('system prompt', 'parameters'), ('parameters',))
    """
    if not system:
        return ("system prompt", "parameters")
    sent = [part.sent or SentRequest() for part in system.values() if part.kind == LOGGED]
    asked = [one.parameters for one in sent]
    prompts = any(one.system is None or UNSAID in one.system for one in sent)
    found = [
        ("system prompt", prompts),
        ("messages around the question", not prompts and any(one.around is None for one in sent)),
        ("parameters", any(one is None or None in one.values() for one in asked)),
    ]
    return tuple(name for name, lacks in found if lacks)


def uncompared(theirs: Mapping[str, RoleSetup], ours: Mapping[str, RoleSetup]) -> bool:
    """Return whether a log is compared with agents that do not say what they send."""
    return any(
        theirs[role].kind == LOGGED and ours[role].sent is None
        for role in theirs.keys() & ours.keys()
    )


def changes(theirs: Mapping[str, RoleSetup], ours: Mapping[str, RoleSetup]) -> list[str]:
    """Name what differs between two systems, in words; what one of them does not know does not.

    >>> from msgspec.structs import replace
    >>> one = RoleSetup(model="m", kind="A", agent={"max_tokens": 64}, prompts={"base": "sha256:1"})
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


def _changed(role: str, theirs: RoleSetup, ours: RoleSetup) -> Iterator[str]:
    if theirs.kind == ours.kind != LOGGED:
        for name, values in _different(theirs.agent, ours.agent):
            yield f"{name} of {role}{values}"
        for name, _ in _different(theirs.prompts, ours.prompts):
            yield f"the prompt '{name}' of {role}"
    elif theirs.sent is not None and ours.sent is not None:
        yield from _sent_otherwise(role, theirs.sent, ours.sent)
    elif LOGGED not in {theirs.kind, ours.kind}:  # whose numbers and prompts are others
        yield f"the agent of {role}{_values(theirs.kind, ours.kind)}"
    if "" not in {theirs.model, ours.model} and theirs.model != ours.model:
        yield f"the model of {role}{_values(theirs.model, ours.model)}"
    else:
        yield from _sold_otherwise(role, theirs, ours)


def _sent_otherwise(role: str, theirs: SentRequest, ours: SentRequest) -> Iterator[str]:
    """Say what is sent otherwise; what one of them does not know is no difference."""
    before, now = ({*(one.system or ())} - {UNSAID} for one in (theirs, ours))
    n = len(before)
    if before and now and before != now and 1 in {n, len(now)}:
        several = "" if n < 2 else f" (one, and {n} were recorded)"
        yield f"the system prompt of {role}{several}"
    if None not in {theirs.around, ours.around} and theirs.around != ours.around:
        yield f"what {role} is sent around the question"
    if None not in {theirs.reads, ours.reads} and theirs.reads != ours.reads:
        yield f"where the answer of {role} is read{_values(theirs.reads, ours.reads)}"
    if theirs.parameters is not None and ours.parameters is not None:
        longest = theirs.longest if ours.longest is None else ours.longest
        for name, one, other in unlike(theirs.parameters, ours.parameters, longest):
            yield f"{name} of {role}{_values(one, other)}"


def _sold_otherwise(role: str, theirs: RoleSetup, ours: RoleSetup) -> Iterator[str]:
    if theirs.settings is not None and ours.settings is not None:
        for name, values in _different(theirs.settings, ours.settings):
            yield f"{name} of {role}{values}"
    if None not in {theirs.price, ours.price} and theirs.price != ours.price:
        yield f"the price of {role}'s model {ours.model}{_values(theirs.price, ours.price)}"


def _different(
    theirs: Mapping[str, Setting], ours: Mapping[str, Setting]
) -> Iterator[tuple[str, str]]:
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

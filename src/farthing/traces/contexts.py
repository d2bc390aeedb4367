"""Contexts: what recorded questions were asked with beside their text, and the system that shows.

A log says it question by question: the system prompt, what was said before, the parameters. Where
all questions say the same, that is what every call was sent; what one does not say is unknown.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from farthing.traces.arrays import Context, TraceArrays
from farthing.traces.base import Trace
from farthing.traces.parameters import BY_ROLE, SEVERAL, Setting
from farthing.traces.pool import is_pool
from farthing.traces.system import (
    ALONE,
    LOGGED,
    UNSAID,
    Part,
    Sent,
    System,
    fingerprint,
    prompt_mark,
)

FEW = 8
"""Of more system prompts than these, so many fingerprints are kept."""
_NONE = prompt_mark("")


def context_of(trace: Trace) -> Context:
    """Return what a question was asked with.

    >>> from farthing.traces.base import Call
    >>> context_of(Trace(id="q", calls=[Call(round=1, role="m")], parameters='{"top_p": 0.5}'))
    Context(system=None, history=None, parameters='{"top_p": 0.5}')
    """
    system, history = (
        None if text is None else prompt_mark(text) for text in (trace.system_prompt, trace.history)
    )
    return Context(system, history, trace.parameters)


def recorded_system(arrays: TraceArrays) -> System | None:
    """Return what the calls of a recorded pool were sent, by role; None where nothing says it."""
    used = [arrays.contexts[place] for place in np.unique(arrays.context).tolist() if place >= 0]
    said = [any(part is not None for part in one) for one in used]
    if not is_pool(arrays) or not any(said):
        return None
    if (arrays.context < 0).any():
        used.append(Context(None, None, None))
    lasting = len(arrays) > 1
    return {
        role: Part(
            model=arrays.models[at],
            kind=LOGGED,
            agent={},
            prompts={},
            sent=Sent(
                system=_systems(used),
                around=_around(used) if lasting else None,
                parameters=_merged([_parameters(one.parameters, role) for one in used]),
                longest=longest(arrays, at),
            ),
        )
        for at, role in enumerate(arrays.roles)
    }


def with_longest(system: System, arrays: TraceArrays) -> System:
    """Return a system that says of single calls how long their recorded replies were at most."""
    found = dict(system)
    for role, part in system.items():
        if part.sent is not None and part.sent.longest is None and role in arrays.roles:
            sent = msgspec.structs.replace(
                part.sent, longest=longest(arrays, arrays.roles.index(role))
            )
            found[role] = msgspec.structs.replace(part, sent=sent)
    return found


def longest(arrays: TraceArrays, at: int) -> int | None:
    """Return the most output tokens of a role's replies; None where one is not known."""
    tokens = arrays.signals.get("output_tokens")
    answered = arrays.made[..., at] & (arrays.answer[..., at] >= 0)
    if tokens is None or not answered.any():
        return None
    most = tokens[..., at][answered].max()
    return None if np.isnan(most) else int(most)


def _systems(used: Sequence[Context]) -> tuple[str, ...] | None:
    """Return the system prompts; those that are known count, even where others are not."""
    known = sorted({one.system for one in used if one.system is not None})[:FEW]
    unsaid = [UNSAID] if any(one.system is None for one in used) else []
    return tuple(known + unsaid) if known else None


def _around(used: Iterable[Context]) -> str | None:
    """Return what stood around every question alike: examples, as turns before it.

    Turns that are not the same for all are the questions' own.
    """
    before = {one.history for one in used}
    if None in before:
        return None
    return ALONE if before == {_NONE} or len(before) > 1 else before.pop()


def _parameters(text: str | None, role: str) -> dict[str, Setting] | None:
    """Return the parameters of a role's calls; None where they are not known, or a digest alone."""
    if text is None:
        return None
    try:
        found = msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return None
    if isinstance(found, dict) and isinstance(by_role := found.get(BY_ROLE), dict):
        found = by_role.get(role)
    return _flat(found) if isinstance(found, dict) else None


def _flat(found: dict[str, Any]) -> dict[str, Setting]:
    return {
        name: fingerprint(value) if isinstance(value, list | dict) else value
        for name, value in found.items()
    }


def _merged(found: Sequence[dict[str, Setting] | None]) -> dict[str, Setting] | None:
    """Return the one value of each parameter; what some do not know nobody knows."""
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    merged: dict[str, Setting] = {}
    for name in sorted({name for one in known for name in one}):
        values = [one.get(name, "as the provider has it") for one in known]
        unknown = any(value is None for value in values)
        merged[name] = None if unknown else values[0] if len({*values}) == 1 else SEVERAL
    return merged

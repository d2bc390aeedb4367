"""Where a policy comes from: the traces it was trained on, and what their calls were sent.

A log says it question by question: the system prompt, what was said before, the parameters. Where
all questions say the same, that is what every call was sent; what one does not say is unknown.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from farthing.traces.arrays import NO_ANSWER, RIGHT, QuestionContext, TraceArrays
from farthing.traces.base import Trace
from farthing.traces.parameters import BY_ROLE, SEVERAL, Setting
from farthing.traces.pool import cascade, in_order, is_pool, names_in_turn
from farthing.traces.system import (
    ALONE,
    LOGGED,
    UNSAID,
    RoleSetup,
    SentRequest,
    System,
    fingerprint,
    prompt_mark,
)
from farthing.traces.trace_kind import CONTROLLER, PROTOCOL_ROLES


class UsualCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The mean of the calls whose tokens and costs are recorded."""

    input_tokens: int
    output_tokens: int
    cost_nano: int


class Origin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a policy comes from, and so where it may be used."""

    roles: tuple[str, ...]
    """The roles of its traces; its actions are these and then `next`."""
    models: tuple[str, ...]
    """The models that filled the roles."""
    mean_cost_nano: tuple[int, ...]
    """Mean price of each role's call in its traces, in nano-dollars, rounded up."""
    horizon: int
    """Number of rounds."""
    fingerprint: str
    """SHA-256 of its training traces."""
    signals: tuple[str, ...] | None = None
    """The recorded numbers of its traces; None in bundles that do not say."""
    always: tuple[str, ...] = ()
    """Those of `confidence` and `uncertainty` that every answer of its traces came with."""
    independent: bool | None = None
    """Whether no call of its traces saw another one; None likewise."""
    largest_nano: dict[str, int] | None = None
    """Role to the most that one of its calls may cost, in nano-dollars, where that is declared."""
    system: System | None = None
    """What the traces were made with that calibrated it, or trained it before; None likewise."""
    reference: str | None = None
    """The role that was right most often alone in training, or that was named; None where none was
    recorded alone, or nobody says."""
    named: tuple[str, ...] = ()
    """The models that its traces name: of a pool that is asked in turn, its line holds the roles of
    the others."""

    usual: dict[str, UsualCall] | None = None
    """What a call of each model took and cost in its traces, where they say it; None likewise."""
    grade: str = RIGHT
    """What an answer was judged by in training."""

    @property
    def is_pool(self) -> bool:
        """Whether its policy asks models side by side by their names, rather than in rounds."""
        return self.horizon == 1 and self.roles != PROTOCOL_ROLES and CONTROLLER not in self.roles

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions, in the order of the scores."""
        return (*self.roles, "next")


def as_asked(traces: TraceArrays, origin: Origin) -> TraceArrays:
    """Return traces as a policy of some origin asks for them live.

    It asks a pool by name, or one model after another in the order of their prices in training;
    that order stays, whatever the models cost in these traces. Models that it never asks are out.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> def pool(small: float) -> TraceArrays:
    ...     calls = [Call(round=1, role="small", cost_usd=small),
    ...              Call(round=1, role="large", cost_usd=0.1)]
    ...     return assemble([Trace(id="q", calls=calls)])
    >>> before = origin_of(cascade(pool(0.01)), "")
    >>> as_asked(pool(0.2), before).models, cascade(pool(0.2)).models
    (('small -> large',), ('large -> small',))
    """
    if not is_pool(traces):
        return traces
    ours, theirs = _names(traces, origin)
    known = set(theirs) <= set(ours) and len(set(ours)) == len(ours)
    places = [ours.index(name) for name in theirs] if known else None
    if not origin.is_pool:
        return cascade(traces, places)
    return traces if places is None else in_order(traces, places)


def _names(traces: TraceArrays, origin: Origin) -> tuple[Sequence[str], Sequence[str]]:
    """Return what an origin calls the models of a pool, and those that it knows, in its order."""
    if origin.is_pool:
        return traces.roles, origin.roles
    return names_in_turn(traces), origin.models[0].split(" -> ")


def roles_asked(traces: TraceArrays, origin: Origin) -> tuple[str, ...]:
    """Return the roles of a pool that a policy of some origin may ask; all, if it is another's."""
    if not is_pool(traces):
        return traces.roles
    ours, theirs = _names(traces, origin)
    found = tuple(role for role, name in zip(traces.roles, ours, strict=True) if name in theirs)
    return found if len(found) == len(theirs) else traces.roles


SURENESS = ("confidence", "uncertainty")
"""What a call says of its own answer: not every model that answers live says it."""


def _always(traces: TraceArrays, name: str) -> bool:
    answered = traces.answer != NO_ANSWER
    values = traces.signals.get(name)
    return values is not None and bool(answered.any()) and not np.isnan(values[answered]).any()


def origin_of(traces: TraceArrays, fingerprint: str, system: System | None = None) -> Origin:
    """Describe the traces that a policy was trained on, and what they were made with."""
    made = np.maximum((traces.cost_nano > 0).sum(axis=(0, 1)), 1)
    mean = -(-traces.cost_nano.sum(axis=(0, 1)) // made)
    return Origin(
        roles=traces.roles,
        models=traces.models,
        mean_cost_nano=tuple(mean.tolist()),
        horizon=traces.horizon,
        fingerprint=fingerprint,
        signals=tuple(traces.signals),
        always=tuple(name for name in SURENESS if _always(traces, name)),
        independent=bool(traces.independent.all()),
        system=system,
        usual=_usual(traces) or None,
        grade=traces.grade,
    )


def _usual(traces: TraceArrays) -> dict[str, UsualCall]:
    """Return what a call of each model of a pool took and cost in the mean."""
    read, written = (traces.signals.get(name) for name in ("input_tokens", "output_tokens"))
    if is_pool(traces):
        places = {name: (0, at) for at, name in enumerate(traces.roles)}
    else:
        line = traces.models[0].split(" -> ")
        places = {name: (at, 0) for at, name in enumerate(line if len(line) > 1 else ())}
    if read is None or written is None:
        return {}
    found = {}
    for name, (number, at) in places.items():
        where = slice(None), number, at
        told = (traces.cost_nano[where] > 0) & np.isfinite(read[where] + written[where])
        if told.any():
            means = (float(one[where][told].mean()) for one in (read, written, traces.cost_nano))
            found[name] = UsualCall(*map(round, means))
    return found


FEW = 8
"""Of more system prompts than these, so many fingerprints are kept."""
_NONE = prompt_mark("")


def context_of(trace: Trace) -> QuestionContext:
    """Return what a question was asked with.

    >>> from farthing.traces.base import Call
    >>> context_of(Trace(id="q", calls=[Call(round=1, role="m")], parameters='{"top_p": 0.5}'))
    QuestionContext(system=None, history=None, parameters='{"top_p": 0.5}')
    """
    system, history = (
        None if text is None else prompt_mark(text) for text in (trace.system_prompt, trace.history)
    )
    return QuestionContext(system, history, trace.parameters)


def recorded_system(arrays: TraceArrays) -> System | None:
    """Return what the calls of a recorded pool were sent, by role; None where nothing says it."""
    used = [arrays.contexts[place] for place in np.unique(arrays.context).tolist() if place >= 0]
    said = [any(part is not None for part in one) for one in used]
    if not is_pool(arrays) or not any(said):
        return None
    if (arrays.context < 0).any():
        used.append(QuestionContext(None, None, None))
    lasting = len(arrays) > 1
    return {
        role: RoleSetup(
            model=arrays.models[at],
            kind=LOGGED,
            agent={},
            prompts={},
            sent=SentRequest(
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


def _systems(used: Sequence[QuestionContext]) -> tuple[str, ...] | None:
    """Return the system prompts; those that are known count, even where others are not."""
    known = sorted({one.system for one in used if one.system is not None})[:FEW]
    unsaid = [UNSAID] if any(one.system is None for one in used) else []
    return tuple(known + unsaid) if known else None


def _around(used: Iterable[QuestionContext]) -> str | None:
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

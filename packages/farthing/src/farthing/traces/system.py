"""What traces are made with: for each role the model, its parameters, prompts and price.

A certificate is about such a system, and ends with it. So collected traces remember theirs, logs
say what their requests were sent with, a bundle takes it over, and whoever answers under the bundle
compares. Agents of one kind are compared by all that they are; where the kinds differ, or a log
knows of none, what counts is what a call sends.

A log says question by question what calls were sent: the system prompt, what was said before, the
parameters, which tools write in different ways and which are named alike here. Where all questions
say the same, that is what every call was sent; what one does not say is unknown.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal

import msgspec
import numpy as np

from farthing.models import thinking
from farthing.traces.arrays import NO_ANSWER, RIGHT, QuestionContext, TraceArrays
from farthing.traces.base import Trace
from farthing.traces.pool import cascade, in_order, is_pool, names_in_turn
from farthing.traces.trace_kind import CONTROLLER, PROTOCOL_ROLES

Setting = str | int | float | bool | None
SEVERAL = "several values"
"""In the place of a value that was not the same for all questions."""
LIMIT = "max_tokens"
BY_ROLE = "by_role"
"""Under it stand parameters that differ between the calls of one question, by role."""
_ALIASES = {
    "max_completion_tokens": LIMIT,
    "max_output_tokens": LIMIT,
    "max_new_tokens": LIMIT,
    "maxTokens": LIMIT,
    "maxOutputTokens": LIMIT,
    "topP": "top_p",
    "topK": "top_k",
    "stop_sequences": "stop",
    "stopSequences": "stop",
}
_USUAL: Mapping[str, Setting] = {
    "temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0,
    "repetition_penalty": 1, "parallel_tool_calls": True, "tool_choice": "auto",
}  # fmt: skip
"""What providers take where a request does not say."""
KNOWN = frozenset(
    {LIMIT, *_USUAL, "top_k", "min_p", "stop", "logit_bias", "response_format", "tools"}
    | {"functions", "verbosity", "modalities", "text", "web_search_options"}
    | thinking.PARAMETERS
)
"""Those that a reply depends on."""
_NO_EFFECT: tuple[Any, ...] = (None, [], {}, {"type": "text"}, {"format": {"type": "text"}})


def parameters_of(said: Mapping[str, Any], *unsaid: str) -> dict[str, Any]:
    """Return the parameters of a request that a reply depends on, under their usual names.

    Args:
        said: the request, or as much of it as the tool keeps.
        unsaid: names of which nobody knows what was sent where they are not there.

    >>> parameters_of({"model": "m", "max_completion_tokens": 9, "temperature": 1.0, "top_p": 0.5})
    {'max_tokens': 9, 'top_p': 0.5}
    >>> parameters_of({"maxTokens": "Infinity"}, "temperature")
    {'temperature': None}
    """
    found: dict[str, Any] = {}
    for key, value in said.items():
        name = usual_name(key)
        if name in KNOWN and found.get(name) is None:  # another name of it may be left empty
            found[name] = _plain(value)
    if not found.get("tools"):
        found.pop("tool_choice", None)
    kept = {
        name: value
        for name, value in found.items()
        if value not in _NO_EFFECT and not (name in _USUAL and value == _USUAL[name])
    }
    return dict(sorted((kept | {name: None for name in unsaid if name not in found}).items()))


def usual_name(name: str) -> str:
    """Return the name that a parameter has here.

    >>> usual_name("max_completion_tokens"), usual_name("temperature")
    ('max_tokens', 'temperature')
    """
    return _ALIASES.get(name, name)


def written(parameters: Mapping[str, Any]) -> str:
    """Return parameters as JSON, one text for equal ones."""
    return msgspec.json.encode(parameters, order="sorted").decode()


def unlike(
    theirs: Mapping[str, Setting], ours: Mapping[str, Setting], longest: int | None
) -> Iterator[tuple[str, Setting, Setting]]:
    """Yield the name and both values of each parameter that differs; one that is unknown does not.

    Two limits of the output are one where no recorded reply reached the smaller: each reply would
    have been the same under either, so that what was proved holds under both.

    >>> list(unlike({"temperature": 0}, {"temperature": 0, "max_tokens": 50}, 49))
    []
    >>> list(unlike({"temperature": None}, {"temperature": 0, "max_tokens": 50}, 50))
    [('max_tokens', None, 50)]
    """
    for name in sorted(theirs.keys() | ours.keys()):
        if any(name in some and some[name] is None for some in (theirs, ours)):
            continue
        one, other = (some.get(name, _USUAL.get(name)) for some in (theirs, ours))
        reached = longest is None or any(
            limit is not None and not (isinstance(limit, int | float) and longest < limit)
            for limit in (one, other)
        )
        if one != other and (name != LIMIT or reached):
            yield name, one, other


def _plain(value: Any) -> Any:
    """Return a number as one, however it is written; one without an end is none."""
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
    if not isinstance(number, float):
        return number
    whole = math.isfinite(number) and number.is_integer()
    return int(number) if whole else number if math.isfinite(number) else None


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
        return
    if theirs.settings is not None and ours.settings is not None:
        for name, values in _different(theirs.settings, ours.settings):
            yield f"{name} of {role}{values}"
    if None not in {theirs.price, ours.price} and theirs.price != ours.price:
        yield f"the price of {role}'s model {ours.model}{_values(theirs.price, ours.price)}"


def _sent_otherwise(role: str, theirs: SentRequest, ours: SentRequest) -> Iterator[str]:
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


def origin_of(traces: TraceArrays, fingerprint: str, system: System | None = None) -> Origin:
    """Describe the traces that a policy was trained on, and what they were made with."""
    made = np.maximum((traces.cost_nano > 0).sum(axis=(0, 1)), 1)
    mean = -(-traces.cost_nano.sum(axis=(0, 1)) // made)
    answered = traces.answer != NO_ANSWER
    sure = {name: traces.signals[name][answered] for name in SURENESS if name in traces.signals}
    return Origin(
        roles=traces.roles,
        models=traces.models,
        mean_cost_nano=tuple(mean.tolist()),
        horizon=traces.horizon,
        fingerprint=fingerprint,
        signals=tuple(traces.signals),
        always=tuple(name for name, said in sure.items() if said.size and not np.isnan(said).any()),
        independent=bool(traces.independent.all()),
        system=system,
        usual=_usual(traces) or None,
        grade=traces.grade,
    )


def _usual(traces: TraceArrays) -> dict[str, UsualCall]:
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
    # System prompts that are known count, even where others are not.
    systems = sorted({one.system for one in used if one.system is not None})[:FEW]
    if systems and any(one.system is None for one in used):
        systems.append(UNSAID)
    # Around every question stood alike examples, as turns before it; turns that are not the same
    # for all are the questions' own.
    before, around = {one.history for one in used}, None
    if len(arrays) > 1 and None not in before:
        around = ALONE if before == {_NONE} or len(before) > 1 else before.pop()
    return {
        role: RoleSetup(
            model=arrays.models[at],
            kind=LOGGED,
            agent={},
            prompts={},
            sent=SentRequest(
                system=tuple(systems) or None,
                around=around,
                parameters=_merged([_parameters(one.parameters, role) for one in used]),
                longest=longest(arrays, at),
            ),
        )
        for at, role in enumerate(arrays.roles)
    }


def with_longest(system: System, arrays: TraceArrays) -> System:
    """Return a system that says of single calls how long their recorded replies were at most."""
    found = dict(system)
    for at, role in enumerate(arrays.roles):
        part = system.get(role)
        if part and part.sent is not None and part.sent.longest is None:
            sent = msgspec.structs.replace(part.sent, longest=longest(arrays, at))
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
    if not isinstance(found, dict):
        return None
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

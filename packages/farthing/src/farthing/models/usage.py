"""One reading of usage: what any provider or logging tool says that a call took.

Each count is known by its name, in whatever place and spelling it stands: one that is said twice
counts once, the larger of both. What is said in a way that cannot be read is unknown, never zero.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import msgspec

from farthing.models.base import Usage
from farthing.money import nano_from_usd

MOST_TOKENS = 10**12
"""The most that a provider's count is taken for: what it costs still fits 64 bits."""
_MOST_USD = 10**6
_LONGEST = 200
"""Characters of the longest name that means something."""
_INPUT, _OUTPUT = "input_tokens", "output_tokens"
COUNTS = (
    "cached_tokens",
    "cache_writes",
    "cache_writes_hour",
    "audio_input",
    "audio_cached",
    "audio_output",
)
"""Counts of a usage within its tokens in and out."""
_TICKS = Decimal(10**10)
"""xAI's ticks of a dollar."""
_STANDARD = frozenset(
    {"", "auto", "default", "standard", "on_demand", "on-demand", "global", "not_available"}
)
_CACHED = (
    r"cached(_content|_input|_prompt|_prompt_text)?_tokens?(_count|_details)?"
    r"|cache_read(_input)?(_tokens?)?(_count)?|cache_hit_tokens|cache_tokens_details"
)
_OUT = "completion|output|candidate|response"
_NAMES: tuple[tuple[str, str], ...] = (
    (
        "",
        r"cost|price|time|duration|latency|speed|byok|ticks|per_second|miss|predict|^(num_)?requests$",
    ),
    ("audio_seconds", r"audio_seconds"),
    ("hour", r"(?=.*(cache|ephemeral)).*(1_?h|hour)"),
    ("minutes", r"(?=.*(cache|ephemeral)).*5_?m"),
    ("writes", r"cache.*(creat|writ)"),
    ("audio_cached", rf"(?=.*({_CACHED})[._]).*audio"),
    ("cached", rf"(^|[._])({_CACHED})([._]|$)"),
    ("audio_output", rf"(?=.*({_OUT})).*audio"),
    ("audio_input", r"audio"),
    ("output_citation_tokens", r"citation"),
    ("reasoning", r"(^|[._])(reasoning|thoughts?|thinking)(_output)?(_tokens?)?(_count)?$"),
    ("tools_input", r"tool_use_prompt_token"),
    ("", r"web_fetch|mcp|tool_search|text|document"),
    ("output_image_tokens", rf"(?=.*({_OUT})).*image(_tokens?)?$"),
    ("input_image_tokens", r"image(_tokens?)?$"),
    ("output_video_tokens", rf"(?=.*({_OUT})).*video(_tokens?)?$"),
    ("input_video_tokens", r"video(_tokens?)?$"),
    ("social_searches", r"x_search|social"),
    ("storage_searches", r"file_search|document_search|collection"),
    ("code_executions", r"code_(interpreter|execution)"),
    ("rerank_searches", r"search_unit"),
    ("web_searches", r"web_search|search_quer|num_search|search\.count"),
    ("total", r"^(tokens\.)?total(_tokens?)?(_count)?$"),
    ("prompt", r"^(num_)?prompt(_tokens?|_eval)?(_count)?$"),
    ("bare", r"^input$"),
    ("input", r"^(tokens\.)?input_tokens?(_count)?$"),
    (
        "output",
        r"^(tokens\.)?(completion|output|candidates|response|eval|generated)(_tokens?)?(_count)?$",
    ),
    ("*", r"(requests|queries|searches|calls|executions|used|invocations|pages|units)$"),
)
"""What a count is, to a pattern of where it stands; the first that fits counts, `*` under its own
name, and without a name none."""
_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _NAMES)
_UNITS = re.compile(
    r"^(web|social|storage|rerank|code)_|^output_cit|_(image|video)_|^audio_seconds|^\*"
)
_DISJOINT = re.compile(
    r"^(input_)?cache_(read|creat|writ)|^cache_?creat|_tokens_cache_|^cache_details"
)
"""Names of what was cached that stand beside an input without it, as Anthropic has them."""


@dataclass
class _Counts:
    """The larger of each count."""

    of: dict[str, int] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    disjoint: bool = False
    """Whether cached tokens stand beside the input, by their name."""

    def add(self, path: str, value: Any) -> None:
        name, found = _name(path), count(value)
        if not name:
            return
        if found is None:
            self.unreadable.add(name)
            return
        self.of[name] = max(self.of.get(name, 0), found)
        self.disjoint |= found > 0 and _DISJOINT.search(path) is not None

    def get(self, *names: str) -> int:
        return max((self.of.get(name, 0) for name in names), default=0)

    def says(self, *names: str) -> bool:
        return any(name in self.of or name in self.unreadable for name in names)

    def known(self, *names: str) -> int | None:
        """Return the largest of some counts; None where none of them is to be read."""
        return max((self.of[name] for name in names if name in self.of), default=None)


def read_usage(usage: Any, beside: Mapping[str, Any] | None = None) -> Usage | None:
    """Return what a call took, by any provider's or tool's usage; None where that says nothing.

    A count of tokens that is not told is 0, and named in `unknown`.

    Args:
        usage: the object that a reply or a log calls usage; what is none says nothing.
        beside: the other fields of the reply, or of the log's row: `service_tier`, `choices`.

    >>> read_usage({"input_tokens": 5, "cache_read_input_tokens": 95, "output_tokens": 10})
    Usage(input_tokens=100, output_tokens=10, estimated=False, cached_tokens=95)
    >>> read_usage({"prompt_tokens": "1000.0", "completion_tokens": 9, "total_tokens": 1094})
    Usage(input_tokens=1000, output_tokens=94, estimated=False, cached_tokens=0)
    """
    around = beside or {}
    found: Usage | None = None
    for one in (usage, *_parts_of(usage), *_usages_in(around)):
        if isinstance(one, Mapping):
            found = largest(found, _read(one, around))
    return found


def largest(first: Usage | None, last: Usage | None) -> Usage | None:
    """Return the larger of each count, as a stream says them at its beginning and at its end.

    >>> largest(Usage(1_500, 1), Usage(0, 20, unknown=("input_tokens",)))
    Usage(input_tokens=1500, output_tokens=20, estimated=False, cached_tokens=0)
    """
    return first or last if first is None or last is None else _both(first, last, max)


def counting(usage: Usage | None, text: str | None) -> Usage | None:
    """Return a usage whose output is unknown where it counts none of a reply's text.

    >>> counting(Usage(9, 0), "4").unknown, counting(Usage(9, 0), "").unknown
    (('output_tokens',), ())
    """
    if usage is None or usage.output_tokens or not text:
        return usage
    return replace(usage, unknown=tuple(sorted({*usage.unknown, _OUTPUT})))


def added(first: Usage | None, last: Usage) -> Usage:
    """Return what two calls took together; None stands for no call.

    >>> added(Usage(10, 1), Usage(5, 2, cached_tokens=4))
    Usage(input_tokens=15, output_tokens=3, estimated=False, cached_tokens=4)
    """
    return last if first is None else _both(first, last, lambda one, other: one + other)


def _both(first: Usage, last: Usage, of: Callable[[int, int], int]) -> Usage:
    names = (_INPUT, _OUTPUT, *COUNTS)
    units, more = dict(first.units), dict(last.units)
    gone = {*first.unknown}.intersection if of is max else {*first.unknown}.union
    counts: dict[str, Any] = {name: of(getattr(first, name), getattr(last, name)) for name in names}
    return Usage(
        **counts,
        estimated=first.estimated or last.estimated,
        reasoning_tokens=_known(first.reasoning_tokens, last.reasoning_tokens, of),
        tier=last.tier or first.tier,
        units=tuple((name, of(units.get(name, 0), more.get(name, 0))) for name in units | more),
        billed_nano=_known(first.billed_nano, last.billed_nano, of),
        unknown=tuple(sorted(gone(last.unknown))),
    )


class _Said(msgspec.Struct, frozen=True):
    """Where in a reply usage may stand, and what it was served at."""

    usage: Any = None
    choices: msgspec.Raw = msgspec.Raw(b"null")
    service_tier: Any = None
    x_groq: Any = None
    response_cost: Any = None
    gemini: Any = msgspec.field(default=None, name="usageMetadata")


_SAID = msgspec.json.Decoder(_Said)


def usage_in(reply: bytes) -> Usage | None:
    """Return what a reply, or a chunk of one, says that the call took; None where it does not.

    >>> usage_in(b'{"usage": {"prompt_tokens": 9, "completion_tokens": 1}, "choices": null}')
    Usage(input_tokens=9, output_tokens=1, estimated=False, cached_tokens=0)
    """
    if b"usage" not in reply:
        return None
    try:
        said = _SAID.decode(reply)
        around = {**msgspec.structs.asdict(said), "usageMetadata": said.gemini, "choices": None}
        if not said.usage and b"usage" in (choices := bytes(said.choices)):
            around["choices"] = msgspec.json.decode(choices)
        return read_usage(said.usage, around)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def count(value: Any) -> int | None:
    """Return a count that is written as any whole number; None where it is none, or below 0.

    >>> count(12), count(12.0), count("12"), count(-1), count(5.5), count("many")
    (12, 12, 12, None, None, None)
    """
    found = _number(value)
    some = None if found is None else min(found, Decimal(MOST_TOKENS))
    return None if some is None or some % 1 else int(some)


@lru_cache(maxsize=4096)
def _name(path: str) -> str:
    known = path if len(path) <= _LONGEST else ""
    name = next((name for name, pattern in _PATTERNS if pattern.search(known)), "")
    return "*" + path.rpartition(".")[2] if name == "*" else name


def _read(usage: Mapping[str, Any], around: Mapping[str, Any]) -> Usage | None:
    counts = _Counts()
    for path, value in _leaves(usage.get("billed_units", usage)):
        counts.add(path, value)
    cached, hour = counts.get("cached", "audio_cached"), counts.get("hour")
    minutes = max(counts.get("minutes"), counts.get("writes") - hour)
    read = _input(counts, cached + minutes + hour) or None  # no call reads nothing
    written = _output(counts, read)
    units = tuple(
        (name.removeprefix("*"), some)
        for name, some in counts.of.items()
        if some and _UNITS.search(name)
    )
    billed = _billed(usage, around)
    if read is None and written is None and billed is None and not units:
        return None
    names = ((_INPUT, read), (_OUTPUT, written))
    ins, outs = read or 0, written or 0
    cached = min(cached, ins)
    hour = min(hour, ins - cached)
    thoughts = counts.known("reasoning")
    return Usage(
        ins,
        outs,
        cached_tokens=cached,
        reasoning_tokens=None if thoughts is None else min(thoughts, outs),
        cache_writes=min(minutes, ins - cached - hour),
        cache_writes_hour=hour,
        audio_input=min(counts.get("audio_input", "audio_cached"), ins),
        audio_cached=min(counts.get("audio_cached"), cached),
        audio_output=min(counts.get("audio_output"), outs),
        tier=_tier(usage, around),
        units=units,
        billed_nano=billed,
        unknown=tuple(name for name, some in names if some is None),
    )


def _input(counts: _Counts, beside: int) -> int | None:
    """Return all input tokens, those of the cache among them, wherever they stand."""
    read = counts.known("prompt", "input", "bare")
    total, written = counts.known("total"), counts.known("output")
    if read is None:
        if counts.says("prompt", "input", "bare") or total is None or written is None:
            return None
        return max(0, total - written)
    read += counts.get("tools_input")
    bare = counts.known("bare") is not None and counts.known("prompt", "input") is None
    within_read = beside <= read  # a part is never more than the whole
    beside += counts.get("audio_input") if bare else 0
    apart = (bare or counts.disjoint) and counts.known("prompt") is None
    if total is not None and written is not None:
        outs = {written, written + counts.get("reasoning")}
        within, without = total - read in outs, total - read - beside in outs
        apart = without if within != without else apart
    return read + beside if apart or not within_read else read


def _output(counts: _Counts, read: int | None) -> int | None:
    """Return all output tokens; thoughts and citations may stand beside the completion.

    Most providers have thoughts in `completion_tokens`; xAI and Gemini do not, and only their total
    tells. More thoughts than completion are beside it, too.
    """
    written, total = counts.known("output"), counts.known("total")
    if written is None:
        if counts.says("output") or total is None or read is None:
            return None
        return max(0, total - read)
    thoughts, cited = counts.get("reasoning"), counts.get("output_citation_tokens")
    apart = thoughts > written or cited or (total is None and counts.says("bare"))
    beside = written + thoughts if apart else written
    return max(beside + cited, (total or 0) - (read or 0)) if read is not None else beside + cited


def _parts_of(usage: Any) -> Iterator[Any]:
    """Yield the sum of Anthropic's iterations; those that made a context shorter stand there."""
    parts = usage.get("iterations") if isinstance(usage, Mapping) else None
    if isinstance(parts, list):
        summed: dict[str, int] = {}
        for path, value in (
            leaf for one in parts if isinstance(one, Mapping) for leaf in _leaves(one)
        ):
            summed[path] = summed.get(path, 0) + (count(value) or 0)
        yield summed


def _usages_in(around: Mapping[str, Any]) -> Iterator[Any]:
    """Yield usage in other places of a reply: Kimi's, Groq's, Gemini's, Bedrock's."""
    choices = around.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        yield choice.get("usage") if isinstance(choice, Mapping) else None
    own = around.get("x_groq")
    yield own.get("usage") if isinstance(own, Mapping) else None
    yield around.get("usageMetadata", around.get("usage_metadata"))


def _leaves(value: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        path = place + _snake(str(name))
        if isinstance(inner, Mapping):
            yield from _leaves(inner, path + ".")
        elif isinstance(inner, Sequence) and not isinstance(inner, str):
            for one in inner:  # Gemini's modalities, Bedrock's times to live
                if isinstance(one, Mapping) and (kind := one.get("modality", one.get("ttl"))):
                    some = one.get("tokenCount", one.get("token_count", one.get("inputTokens")))
                    yield f"{path}.{kind}".lower(), some
        else:
            yield path, inner


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace("-", "_")


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def _known(one: int | None, other: int | None, of: Callable[[int, int], int]) -> int | None:
    return other if one is None else one if other is None else of(one, other)


def _tier(usage: Mapping[str, Any], around: Mapping[str, Any]) -> str | None:
    for said in (
        usage.get("speed"),
        *map(_named_tier, (usage, around)),
        usage.get("inference_geo"),
    ):
        if isinstance(said, str) and said.lower() not in _STANDARD:
            return said.lower()
    return None


def _named_tier(fields: Mapping[str, Any]) -> Any:
    said = fields.get("service_tier", fields.get("serviceTier"))
    return said.get("type") if isinstance(said, Mapping) else said


def _billed(usage: Mapping[str, Any], around: Mapping[str, Any]) -> int | None:
    """Return what a reply says that was billed, in nano-dollars; a 0 says nothing."""
    cost = usage.get("cost")
    said = cost.get("total_cost") if isinstance(cost, Mapping) else cost
    usd = [_number(one) for one in (said, *map(usage.get, _BILLED), around.get("response_cost"))]
    details = usage.get("cost_details")
    if usage.get("is_byok") and isinstance(details, Mapping):
        usd.append((usd[0] or Decimal(0)) + (_number(details.get("upstream_inference_cost")) or 0))
    ticks = _number(usage.get("cost_in_usd_ticks"))
    usd.append(None if ticks is None else ticks / _TICKS)
    most = max((one for one in usd if one), default=None)
    return None if most is None else nano_from_usd(min(most, Decimal(_MOST_USD)))


_BILLED = ("total_cost", "estimated_cost")

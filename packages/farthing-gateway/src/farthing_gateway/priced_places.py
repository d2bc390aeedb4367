"""What in a request has a price beside the tokens of its text: one table of places, for all forms.

A place is a path in the request's JSON, never a search in its bytes: what stands in a text or in a
tool's arguments is none. What the tables do not name costs the most that it can: such a tool is one
that the provider runs, and such a part of the input may have any length.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

RATES: Mapping[str, str] = {
    **dict.fromkeys(
        ("service_tier", "serviceTier"), "auto|default|standard|standard_only|flex|on_demand"
    ),
    "speed": "standard",
    "inference_geo": "global",
    "modalities": "text",
    "models": "(?!)",
    "fallbacks": "(?!)",
}
"""Fields that change the price of tokens, to a pattern of the values that do not."""
PROVIDER_RUN: Mapping[str, str] = {
    "web_search_options": "(?!)",
    "search_parameters": "off",
    **dict.fromkeys(("enable_search", "web_search", "enable_enhancement"), "(?!)"),
    "compound_custom": "(?!)",
    "enable_code_interpreter": "(?!)",
    "plugins": "response-healing|context-compression",
    "mcp_servers": "(?!)",
    "container": "(?!)",
    "data_sources": "(?!)",
    "connectors": "(?!)",
    "context_management": "clear_.*|",
    "context_management.edits": "clear_.*|",
}
"""Fields by which the provider runs something, to a pattern of the values, or names of members of a
list, that cost tokens alone."""
CLIENT_TOOLS: Mapping[str, str] = {
    "function|custom|namespace|local_shell|apply_patch|computer|computer_use_preview": "",
    r"(bash|text_editor|computer|memory|browser_toolset)_\d+": "",
    "shell": "environment.type=local",
    "tool_search": "execution=client",
}
"""Types of the tools that clients run, which cost tokens alone, to what such a tool must say. All
others are the provider's."""
UNITS: Mapping[str, str] = {
    "file_search|collections_search|document_library": "storage_searches",
    "code_.*|enable_code_interpreter|container|shell": "code_executions",
    "x_search": "social_searches",
    r"(.*\b)?web(\b.*|_search.*)|.*search.*": "web_searches",
}
"""What the provider runs, to what a price list calls one use of it; of others their own name."""
PARTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text", "reasoning_text"), ()),
    **dict.fromkeys(("refusal", "thinking", "redacted_thinking", "tool_use"), ()),
    **dict.fromkeys(("function_call", "custom_tool_call", "computer_call", "shell_call"), ()),
    **dict.fromkeys(("local_shell_call", "apply_patch_call", "tool_search_call"), ()),
    **dict.fromkeys(("local_shell_call_output", "shell_call_output", "tool_search_output"), ()),
    **dict.fromkeys(("function_call_output", "custom_tool_call_output"), ("output",)),
    **dict.fromkeys(("computer_call_output", "apply_patch_call_output"), ("output",)),
    **dict.fromkeys(("message", "tool_result", "content"), ("content",)),
    "reasoning": ("summary", "content"),
}
"""Items and parts of the input that have no more tokens than bytes, to the fields with parts of
their own. All others may have any length, but for images."""
IMAGES = ("image_url", "input_image", "computer_screenshot", "image")
REFERENCES = ("previous_response_id", "conversation", "cached_content", "file_ids")
"""Fields that stand for input which the provider has."""
_INPUT = ("messages", "system", "input", "prompt", "prediction")
_WITHIN = ("extra_body", "google")
"""Objects with more fields of the request."""
_NOTHING: tuple[Any, ...] = (None, False, "", [])
_LABEL = re.compile(r"[\w.:$/@-]{1,64}")

Kind = Literal["tool", "rate", "cache", "hour", "image", "audio", "unknown"]
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Place:
    """Where something stands that has a price beside the tokens of a text.

    >>> str(Place(("tools", 2), "tool", "web_search_20250305"))
    'tools[2]: web_search_20250305'
    """

    path: Path
    kind: Kind
    """The provider runs it; it changes the price of tokens; input goes into the provider's cache,
    for minutes or an hour; an image; sound; a part of the input that may have any length."""
    what: str = ""
    """Its type or value; of an image its detail."""
    shown: str = ""
    """Address or data of an image."""
    offline: bool = False
    """Whether its client wants no access to the web, and so can do without it."""

    @property
    def unit(self) -> str:
        """What a price list calls one use of what the provider runs here."""
        return unit_of(self.path[-1] if isinstance(self.path[-1], str) else self.what)

    def __str__(self) -> str:
        steps = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in self.path)
        named = f": {self.what}" if _LABEL.fullmatch(self.what) else ""
        return "".join(steps).removeprefix(".") + named


def places_in(body: Mapping[str, Any], path: Path = ()) -> Iterator[Place]:
    """Yield the places of a request, in any form, that have a price beside the tokens of a text.

    >>> said = {"tools": [{"type": "custom"}, {"type": "web_search"}], "input": [{"id": "msg_1"}]}
    >>> print(*places_in(said), sep=", ")
    tools[1]: web_search, input[0]: message
    """
    yield from _caching(body, path)
    for name, covered in RATES.items():
        yield from _uncovered(body, name, covered, "rate", path)
    for name, covered in PROVIDER_RUN.items():
        yield from _uncovered(body, name, covered, "tool", path)
    yield from _tools(body.get("tools"), (*path, "tools"))
    for name in REFERENCES:
        yield from _uncovered(body, name, "(?!)", "unknown", path)
    for name in _INPUT:
        yield from _parts(body.get(name), (*path, name))
    for name in _WITHIN:
        if isinstance(body.get(name), dict):
            yield from places_in(body[name], (*path, name))


def unit_of(tool: str) -> str:
    """Return what a price list calls one use of what the provider runs.

    >>> unit_of("web_search_20250305"), unit_of("tool_of_2027")
    ('web_searches', 'tool_of_2027')
    """
    return next((unit for one, unit in UNITS.items() if re.fullmatch(one, tool)), tool)


def without(body: Mapping[str, Any], paths: Sequence[Path]) -> dict[str, Any]:
    """Return a request without what stands at some paths, nor what asks for a tool among that.

    >>> without({"tools": [{"type": "web_search"}], "tool_choice": "auto", "n": 1}, [("tools", 0)])
    {'n': 1}
    """
    left: dict[str, Any] = _left(body, paths)
    gone = [_inside(body, path) for path in paths if path[0] == "tools"]
    choice = left.get("tool_choice")
    omitted: tuple[str, ...] = ()
    if gone and not left.get("tools"):
        omitted = ("tools", "tool_choice", "parallel_tool_calls")
    elif isinstance(choice, dict) and _names(choice, *_list(choice.get("tools"))) & _names(*gone):
        omitted = ("tool_choice",)
    return {name: value for name, value in left.items() if name not in omitted}


def _left(value: Any, paths: Sequence[Path]) -> Any:
    inner: dict[str | int, list[Path]] = {}
    for first, *rest in paths:
        inner.setdefault(first, []).append(tuple(rest))
    if not inner:
        return value
    members = value.items() if isinstance(value, dict) else enumerate(value)
    kept = {at: _left(one, inner.get(at, ())) for at, one in members if () not in inner.get(at, ())}
    return kept if isinstance(value, dict) else list(kept.values())


def _uncovered(
    body: Mapping[str, Any], name: str, covered: str, kind: Kind, path: Path
) -> Iterator[Place]:
    first, *rest = name.split(".")
    if body.get(first) in _NOTHING:
        return
    value = _inside(body[first], rest)
    if not isinstance(value, list):
        if not re.fullmatch(covered, _name(value)):
            yield Place((*path, first), kind, _name(value))
        return
    for at, one in enumerate(value):
        off = isinstance(one, dict) and one.get("enabled") is False
        if not (off or re.fullmatch(covered, _name(one))):
            yield Place((*path, first, *rest, at), kind, _name(one))


def _tools(tools: Any, path: Path) -> Iterator[Place]:
    if isinstance(tools, dict) and tools:
        yield Place(path, "tool", _name(tools))
    for at, tool in enumerate(_list(tools)):
        here, said = (*path, at), tool if isinstance(tool, dict) else {"type": tool}
        yield from _caching(said, here)
        yield from _caching(said.get("function"), (*here, "function"))
        if not _is_clients(said):
            what = _name(said) or next(iter(said), "")
            yield Place(here, "tool", what, offline=said.get("external_web_access") is False)
        yield from _tools(said.get("tools"), (*here, "tools"))


def _is_clients(tool: Mapping[str, Any]) -> bool:
    kind = tool.get("type")
    if kind is None:
        declared = {"function_declarations", "functionDeclarations"} >= tool.keys()
        return declared or "function" in tool or "name" in tool
    for pattern, must in CLIENT_TOOLS.items():
        if re.fullmatch(pattern, str(kind)):
            where, _, value = must.partition("=")
            return not must or _inside(tool, where.split(".")) == value
    return False


def _parts(value: Any, path: Path) -> Iterator[Place]:
    for at, one in enumerate(_list(value)):
        yield from _parts(one, (*path, at))
    if isinstance(value, dict):
        yield from _part(value, path)


def _part(part: Mapping[str, Any], path: Path) -> Iterator[Place]:
    kind = "message" if part.get("type") is None else str(part["type"])
    yield from _caching(part, path)
    yield from _tools(part.get("tools"), (*path, "tools"))
    if kind == "input_audio":
        yield Place(path, "audio", kind)
    elif kind in IMAGES and (shown := _shown(part)):
        yield Place(path, "image", *shown)
    elif kind not in PARTS or _is_reference(kind, part):
        yield Place(path, "unknown", kind)
    for name in PARTS.get(kind, ()):
        yield from _parts(part.get(name), (*path, name))


def _is_reference(kind: str, part: Mapping[str, Any]) -> bool:
    if kind == "reasoning":
        return "id" in part and not part.get("encrypted_content")
    by_id = part.get("content") is None and ("id" in part or "role" not in part)
    return kind == "message" and (by_id or bool(part.get("audio")))


def _shown(part: Mapping[str, Any]) -> tuple[str, str] | None:
    said = part.get("image_url", part.get("source"))
    inner = said if isinstance(said, dict) else {}
    where = inner.get("data", inner.get("url")) if inner else said
    detail = part.get("detail", inner.get("detail"))
    if not isinstance(where, str) or part.get("file_id"):
        return None
    return (detail if isinstance(detail, str) else "", where)


def _caching(part: Any, path: Path) -> Iterator[Place]:
    said = part.get("cache_control") if isinstance(part, dict) else None
    if not said:
        return
    ttl, here = _inside(said, ["ttl"]), (*path, "cache_control")
    if ttl in (None, "5m"):
        yield Place(here, "cache")
    else:
        yield Place((*here, "ttl"), "hour" if ttl == "1h" else "rate", str(ttl))


def _inside(value: Any, path: Sequence[str | int]) -> Any:
    for one in path:
        if isinstance(one, str):
            value = value.get(one) if isinstance(value, dict) else None
        else:
            value = value[one]
    return value


def _name(value: Any) -> str:
    said = value
    if isinstance(value, dict):
        said = next((value[one] for one in ("id", "type", "name", "mode") if value.get(one)), "")
    return said if isinstance(said, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _names(*tools: Any) -> set[str]:
    said = [one.get(name) for one in tools if isinstance(one, dict) for name in ("type", "name")]
    return {one for one in said if isinstance(one, str)}

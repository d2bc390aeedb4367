"""What a request may say, from msgspec structs: one truth for checks, messages and OpenAPI."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from farthing.errors import BadRequestError

T = TypeVar("T", bound=msgspec.Struct)
_PLACE = re.compile(r" - at `\$\.?(.*)`$")
_MISSING = re.compile(r"missing required field `([^`]*)`")
_UNKNOWN = re.compile(r"contains unknown field `([^`]*)`")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class RequestError(BadRequestError):
    """A request that cannot be served as it is; `param` names the field, where there is one.

    >>> error = RequestError("'n' must be a whole number from 1 to 128", "n")
    >>> print(error, error.param)
    'n' must be a whole number from 1 to 128 n
    """

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


def checked(raw: Mapping[str, Any], kind: type[T], within: str = "", *, strict: bool = True) -> T:
    """Return what a request says, checked; fields that a struct does not name are passed over.

    Args:
        raw: the decoded object.
        kind: what it may say.
        within: what messages put before a field's name.
        strict: False: numbers may be spelt as texts, as headers do.

    Raises:
        RequestError: a field is not what it must be; the message says which, and what that is.

    >>> from typing import Annotated
    >>> class Body(msgspec.Struct):
    ...     n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    >>> checked({"n": 0}, Body)
    Traceback (most recent call last):
        ...
    farthing_gateway.request_schema.RequestError: 'n' must be a whole number from 1 to 128
    """
    try:
        return msgspec.convert(raw, kind, strict=strict)
    except msgspec.ValidationError as error:
        said = str(error)
    place, schema = _field(said, kind)
    if unknown := _UNKNOWN.search(said):
        whole = (within + place).rstrip(".")
        known = ", ".join(sorted(schema.get("properties", ())))
        raise RequestError(f"'{whole}' has no field '{unknown[1]}', only {known}", whole)
    raise RequestError(f"'{within}{place}' must be {in_words(schema)}", within + place)


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a struct, with what it refers to in place."""
    (whole,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    found: dict[str, Any] = _resolved(whole, parts)
    return found


def in_words(schema: Mapping[str, Any]) -> str:
    """Say what a value must be.

    >>> in_words({"anyOf": [{"type": "string"}, {"type": "null"}]})
    'a text'
    """
    if "title" in schema and schema["title"][:1].islower():
        return str(schema["title"])
    if "anyOf" in schema:
        some = (one for one in schema["anyOf"] if one.get("type") != "null")
        return " or ".join(dict.fromkeys(map(in_words, some)))
    if "enum" in schema:
        return f"one of {', '.join(sorted(map(str, schema['enum'])))}"
    say = _SAID.get(schema.get("type", "object"))
    return "an object" if say is None else say(schema)


def _list(schema: Mapping[str, Any]) -> str:
    kind = _NAMES.get(schema.get("items", {}).get("type"), "value")
    return f"a list of at least one {kind}" if schema.get("minItems") else f"a list of {kind}s"


def _text(schema: Mapping[str, Any]) -> str:
    most = schema.get("maxLength")
    return "a text" if most is None else f"a text of 1 to {most} printable characters"


_SAID: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "integer": lambda schema: f"a whole number{_range(schema)}",
    "number": lambda schema: f"a number{_range(schema)}",
    "boolean": lambda _: "true or false",
    "array": _list,
    "string": _text,
}
_NAMES = {"string": "text", "object": "object", "integer": "number", "array": "list"}


def _range(schema: Mapping[str, Any]) -> str:
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least:,} to {most:,}" if most >= 10**6 else f" from {least:g} to {most:g}"
    said = [f"more than {above:g}" if above is not None else ""]
    said.append(f"less than {below:g}" if below is not None else "")
    said.append(f"at most {most:,}" if most is not None else "")
    return " " + " and ".join(filter(None, said)) if any(said) else ""


def _field(said: str, kind: type[msgspec.Struct]) -> tuple[str, Mapping[str, Any]]:
    found = _PLACE.search(said)
    steps = _STEP.findall(found[1]) if found else []
    if missing := _MISSING.search(said):
        steps.append((missing[1], ""))
    place = ""
    schema: Mapping[str, Any] = schema_of(kind)
    for name, index in steps:
        inner = schema.get("properties", {}).get(name) if name else schema.get("items")
        if inner is None:  # one of several forms: the field as a whole
            break
        place += f"[{index}]" if index else f"{'.' * bool(place)}{name}"
        schema = _only(inner)
    return place, schema


def _only(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    some = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return some[0] if len(some) == 1 else schema


def _resolved(schema: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            more = {name: value for name, value in schema.items() if name != "$ref"}
            return _resolved(parts[schema["$ref"]], parts) | more
        kept = {name: value for name, value in schema.items() if name != "default"}
        return {name: _resolved(value, parts) for name, value in kept.items()}
    return [_resolved(one, parts) for one in schema] if isinstance(schema, list) else schema

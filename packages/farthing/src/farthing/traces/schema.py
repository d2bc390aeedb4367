"""The trace format in words: the JSON Schema of one line, and what is wrong with a field."""

import ast
import inspect
import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, get_args

import msgspec

from farthing.traces import base
from farthing.traces.base import MissingBecause, SplitName, Trace

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REPLY = {"properties": {"role": {"pattern": "^(policy|exit)-"}}, "required": ["role"]}


def trace_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of one line.

    What a schema of a line cannot say is checked where a file is read: ids are unique, no round is
    missing, and a role answers a round once.

    >>> trace_schema()["required"]
    ['id', 'calls']
    """
    definitions: dict[str, Any]
    _, definitions = msgspec.json.schema_components([Trace], ref_template="#/$defs/{name}")
    for name, definition in definitions.items():
        _describe(definition, _documented(name))
    trace, call = definitions.pop("Trace"), definitions["Call"]
    # In a file the other numbers stand in the call itself; the record gathers them in `extra`.
    del call["properties"]["extra"]
    call["additionalProperties"] = {
        "type": "number",
        "description": "Any other number; a feature only when asked for by name.",
    }
    trace["additionalProperties"] = False
    trace["properties"]["calls"]["contains"] = {"not": _REPLY}
    return {"$schema": DIALECT, **trace, "$defs": definitions}


def _describe(definition: dict[str, Any], documented: dict[str, str]) -> None:
    definition["description"] = definition["description"].partition("\n")[0]
    for name, property_ in definition["properties"].items():
        if name in documented:
            property_["description"] = documented[name]


def _documented(record: str) -> dict[str, str]:
    """Return the line under each field of a record, so that it is written once only."""
    (body,) = ast.parse(inspect.getsource(getattr(base, record))).body
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


_KINDS = {
    "str": "text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in brackets",
    "object": "an object in braces",
}
_EXPECTED = re.compile(r"Expected `(\w+)(?: \| null)?`(?: (.*)|, got .*)?$", re.DOTALL)
_BOUNDS = {">=": "at least", "<=": "at most", ">": "above"}
_CHOICES = {"split": SplitName, "missing_because": MissingBecause}
"""The fields that hold one of a few words."""


def plain(message: str, field: str) -> str:
    """Say what is expected of the value of a field.

    >>> plain("Expected `float | null`, got `str`", "f1"), plain("Expected `int` >= 1", "round")
    ('must be a number', 'must be a whole number, at least 1')
    >>> plain("Expected `array` of length >= 1", "calls"), plain("Invalid enum value 'x'", "split")
    ('must not be empty', 'must be train, calibrate or test')
    >>> plain("Invalid enum value 'foo'", "missing_because")
    'must be chance, earlier_reply or unknown'
    """
    if message.startswith("Invalid enum value") and field in _CHOICES:
        *names, last = get_args(_CHOICES[field])
        return f"must be {', '.join(names)} or {last}"
    found = _EXPECTED.match(message)
    if not found:
        return message[:1].lower() + message[1:]
    kind, bound = _KINDS.get(found[1], found[1]), found[2] or ""
    if bound.startswith("of length"):
        return "must not be empty"
    if bound.startswith("matching"):
        return "must not hold the character NUL"
    sign, _, limit = bound.partition(" ")
    beyond = f", {_BOUNDS[sign]} {float(limit):.15g}" if sign in _BOUNDS else ""
    return f"must be {kind}{beyond}"


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that another was probably meant to be.

    >>> near("cost", ["cost_usd", "round"]), near("Anwser", ["answer"]), near("extra", ["text"])
    ('cost_usd', 'answer', None)
    """
    said = name.casefold().replace(" ", "_")
    parts = [field for field in sorted(known) if said in {*field.split("_"), field}]
    close = parts or get_close_matches(said, sorted(known), n=1, cutoff=0.75)
    return close[0] if close else None

"""The JSON Schema of one line of a trace file, made from the records themselves."""

import ast
import inspect
from itertools import pairwise
from typing import Any

import msgspec

from farthing.traces import base
from farthing.traces.base import Trace

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

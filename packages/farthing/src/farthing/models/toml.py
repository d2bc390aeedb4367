"""TOML as checked records; what is wrong is said in words of someone who writes such files."""

import re
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from farthing.errors import ConfigError

T = TypeVar("T")

_KINDS = {
    "str": "text in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in brackets",
    "object": "a table",
}
_EXPECTED = re.compile(
    r"Expected `(\w+)(?: \| null)?`(?:( of length)? (>=|<=) ([\d.]+)|, got .*)?$"
)
_BOUNDS = {">=": "at least", "<=": "at most"}
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`$")


def read_toml(file: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = "there is no such file; check the path"
    except OSError as error:
        problem = f"cannot be read ({(error.strerror or str(error)).lower()}); check the path"
    except UnicodeDecodeError:
        problem = "is not text in UTF-8; save it so"
    except tomllib.TOMLDecodeError as error:
        problem = f"is not TOML: {error}"
    raise ConfigError(str(file), "file", problem)


def convert(table: Any, kind: type[T], file: str, field: str = "") -> T:
    """Turn a table into a record, a msgspec struct.

    Messages name the file, and the field where the table is in it; empty: it is the whole file.
    """
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        where = (field + path.rstrip("`").replace("[...]", ".NAME")).strip(".")
        raise ConfigError(file, where or "file", _plain(problem, kind, path)) from None


def _plain(problem: str, kind: type, path: str) -> str:
    if found := _FIELD.match(problem):
        if found[1] == "missing required":
            return f"lacks the field `{found[2]}`"
        known = getattr(_struct_at(kind, path), "__struct_fields__", ())
        close = get_close_matches(found[2], known, n=1)
        hint = f"; did you mean `{close[0]}`?" if close else ";" if known else ""
        there = f"{hint} there are {', '.join(known)}" if known else ""
        return f"has no field `{found[2]}`{there}"
    if problem.startswith("Invalid enum value"):
        allowed = " or ".join(_choices(get_type_hints(kind).get(path.strip(".`"))))
        return f"is {problem.removeprefix('Invalid enum value ')}; write {allowed or 'another'}"
    if found := _EXPECTED.match(problem):
        bound = f", {_BOUNDS[found[3]]} {float(found[4]):.15g}" if found[3] else ""
        bound += " long" if found[2] else ""
        return f"must be {_KINDS.get(found[1], found[1])}{bound}"
    return problem


def _struct_at(kind: Any, path: str) -> Any:
    """Return the struct that a path such as `.limits.NAME` leads to; None where it is none."""
    for name in filter(None, path.rstrip("`").split(".")):
        kind = _inner(kind) if name.startswith("[") else get_type_hints(kind).get(name)
        kind = _inner(kind) if not hasattr(kind, "__struct_fields__") else kind
    return kind


def _inner(hint: Any) -> Any:
    inside = [hint, *get_args(hint)]
    return next((one for one in inside if hasattr(one, "__struct_fields__")), None)


def _choices(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(value) for value in get_args(hint)]
    return [value for inner in get_args(hint) for value in _choices(inner)]

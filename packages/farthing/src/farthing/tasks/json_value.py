"""JSON by value: white space, the order of keys, and how a number is written do not matter."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(?P<inside>.*?)\n?\s*```\s*", re.DOTALL | re.IGNORECASE)


def by_value(answer: str, fold: Callable[[str], str] = str) -> str | None:
    """Return JSON in one form for each value; None for what is no JSON, or says a key twice.

    Args:
        answer: the text, in a code fence or not.
        fold: the form in which texts within are compared, keys too.

    >>> by_value('{"b": 1.0, "a": [true, 0.50]}'), by_value("Not JSON.")
    ('{"a":[true,0.5],"b":1}', None)
    """
    fenced = _FENCED.fullmatch(answer)
    try:
        found = json.loads(
            fenced["inside"] if fenced else answer,
            parse_float=_number,
            parse_constant=_refused,
            object_pairs_hook=lambda pairs: _once([(fold(name), one) for name, one in pairs]),
        )
        plain = _folded(found, fold)
    except (ValueError, RecursionError):
        return None
    return json.dumps(plain, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _folded(value: Any, fold: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {name: _folded(one, fold) for name, one in value.items()}
    if isinstance(value, list):
        return [_folded(one, fold) for one in value]
    return fold(value) if isinstance(value, str) else value


def _number(written: str) -> int | float:
    number = float(written)
    if not math.isfinite(number):
        raise ValueError("it is too large")
    return int(number) if number.is_integer() else number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is said twice")
    return found


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no number")

"""Parameters of a request: what was asked for beside the text, named and compared alike.

Tools write the same request in different ways. What leaves every reply as it is has no place here;
what is left out is as providers have it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from farthing.models import thinking

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
        if one != other and not (name == LIMIT and _unreached(one, other, longest)):
            yield name, one, other


def _unreached(one: Setting, other: Setting, longest: int | None) -> bool:
    limits = [limit for limit in (one, other) if limit is not None]
    return longest is not None and all(
        isinstance(limit, int | float) and longest < limit for limit in limits
    )


def _plain(value: Any) -> Any:
    """Return a number as one, however it is written; one without an end is none."""
    number = value
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return value
    if isinstance(number, float):
        if not math.isfinite(number):
            return None
        return int(number) if number.is_integer() else number
    return number

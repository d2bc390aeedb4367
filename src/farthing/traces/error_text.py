"""What is wrong with a field, in words of someone who writes traces rather than programs."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import get_args

from farthing.traces.base import MissingBecause, SplitName

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
    return f"must be {kind}" + (f", {_BOUNDS[sign]} {float(limit):g}" if sign in _BOUNDS else "")


def near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that another was probably meant to be.

    >>> near("cost", ["cost_usd", "round"]), near("Anwser", ["answer"]), near("extra", ["text"])
    ('cost_usd', 'answer', None)
    """
    said = name.casefold().replace(" ", "_")
    parts = [field for field in sorted(known) if said in {*field.split("_"), field}]
    close = parts or get_close_matches(said, sorted(known), n=1, cutoff=0.75)
    return close[0] if close else None

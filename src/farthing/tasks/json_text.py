"""JSON: white space, the order of keys, and a code fence around it do not matter."""

import json
import re

from farthing.tasks import text
from farthing.tasks.base import ExactMatch

_FENCED = re.compile(r"\s*```(?:json)?\s*\n(?P<inside>.*?)\n?\s*```\s*", re.DOTALL | re.IGNORECASE)


def normalise(answer: str) -> str:
    """Return JSON with its keys in order and no white space; what is no JSON as plain text.

    >>> normalise('{"b": 1.0, "a": [true]}'), normalise("Not JSON.")
    ('{"a":[true],"b":1.0}', 'not json')
    """
    fenced = _FENCED.fullmatch(answer)
    inside = fenced["inside"] if fenced else answer
    try:
        found = json.loads(inside)
    except (ValueError, RecursionError):
        return text.normalise(answer)
    return json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


JSON = ExactMatch("json", normalise)
"""What a reply in JSON says: answers are the same where their values are."""

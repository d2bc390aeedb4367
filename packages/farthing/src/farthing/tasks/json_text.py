"""JSON: white space, the order of keys, and a code fence around it do not matter."""

from farthing.tasks import text
from farthing.tasks.base import ExactMatch
from farthing.tasks.json_value import by_value


def normalise(answer: str) -> str:
    """Return JSON with its keys in order and no white space; what is no JSON as plain text.

    >>> normalise('{"b": 1.0, "a": [true]}'), normalise("Not JSON.")
    ('{"a":[true],"b":1}', 'not json')
    """
    plain = text.normalise(answer)  # a full stop may stand behind what is JSON without it
    return by_value(answer) or by_value(plain) or plain


JSON = ExactMatch("json", normalise)
"""What a reply in JSON says: answers are the same where their values are."""

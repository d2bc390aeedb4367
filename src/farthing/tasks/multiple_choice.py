"""Multiple choice: the letter that a reply chooses, A to J."""

import re

from farthing.tasks import text
from farthing.tasks.base import ExactMatch

_LETTER = (
    re.compile(r"\W*([A-Ja-j])\W*"),  # B, (b), **B**
    re.compile(r"\W*([A-Ja-j])[.):\]].*", re.DOTALL),  # B: foo, (b) foo
    re.compile(  # The answer is B; a lower-case letter may be a word, so it must stand at the end
        r".*(?i:\banswer|\bchoice|\boption)(?i:\s+is)?[\s:*(\[\"']+([A-J]\b|[a-j](?=\W*$)).*",
        re.DOTALL,
    ),
)


def normalise(answer: str) -> str:
    """Return the chosen letter as a capital; where none can be read, the text itself.

    >>> [normalise(reply) for reply in ("(b)", "B: Paris", "The answer is B.", "Paris")]
    ['B', 'B', 'B', 'paris']
    """
    for pattern in _LETTER:
        if match := pattern.fullmatch(answer):
            return match[1].upper()
    return text.normalise(answer)


MULTIPLE_CHOICE = ExactMatch("multiple_choice", normalise)

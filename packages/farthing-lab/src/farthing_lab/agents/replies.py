"""What replies of a dialogue say: a verdict, an action, an exit. What cannot be read is None.

As in `farthing.tasks.replies`, only the reply itself is read, from a place that its prompt fixed.
"""

import re
from dataclasses import dataclass

from farthing.tasks.replies import unwrapped

_LABEL = r"\W*(?:(?:your\s+|my\s+)?(?:response|reply|verdict|judge?ment|evaluation|action)\W*)?"
_VERDICT = re.compile(_LABEL + r"\b(?P<word>yes|no)\b(?![ \t]*/|[ \t]+(?:and|or)\b)", re.IGNORECASE)
_CORRECTION = re.compile(
    r"[*_`\"'\]>]*[,.:;!]?[*_`\"']*(?:\s*[-–—]+(?=\s))?\s*"
    r"(?:(?:the\s+)?(?:correct\s+|right\s+)?answer(?:\s+is\b|\s+should\s+be\b|\s*:):?\s*)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(_LABEL + r"([1-9])(?!\w|[.,/]\d|\s*(?:or|and|/|,|-)\s*[1-9])", re.IGNORECASE)
_EXIT = re.compile(r"\W*(?:output\W+|answer\W+)?(exit|continue)\W*", re.IGNORECASE)


@dataclass(frozen=True)
class Verdict:
    """What the guide said of the base's answer."""

    agrees: bool | None
    """None where the reply says neither yes nor no."""
    correction: str | None = None
    """The guide's own answer, where it disagrees and gives one."""


def read_verdict(reply: str) -> Verdict:
    """Return what a reply that was to be "Yes" or "No <answer>" says.

    The first word of its first line is the verdict. The answer is the rest of that line, or the
    next line where the rest is empty.

    >>> read_verdict("Yes."), read_verdict("No, Lisbon")
    (Verdict(agrees=True, correction=None), Verdict(agrees=False, correction='Lisbon'))
    >>> read_verdict("Perhaps")
    Verdict(agrees=None, correction=None)
    """
    lines = [unwrapped(line) for line in reply.splitlines() if line.strip()]
    match = _VERDICT.match(lines[0]) if lines else None
    if match is None:
        return Verdict(None)
    if match["word"].casefold() == "yes":
        return Verdict(agrees=True)
    below = _CORRECTION.sub("", lines[1], count=1) if lines[1:] else ""
    beside = _CORRECTION.sub("", lines[0][match.end() :], count=1)
    return Verdict(agrees=False, correction=unwrapped(beside) or unwrapped(below) or None)


def read_number(reply: str, largest: int) -> str | None:
    """Return the number that a reply chooses, from 1; None where it chooses none, or two.

    >>> [read_number(reply, 3) for reply in ("2", "**Action: 3**", "1 or 2", "4", "two")]
    ['2', '3', None, None, None]
    """
    match = _NUMBERED.match(reply)
    return match[1] if match and int(match[1]) <= largest else None


def read_exit(reply: str) -> str | None:
    """Return `exit` or `continue` where the reply is that and nothing else.

    >>> read_exit("[EXIT]"), read_exit("Continue."), read_exit("EXIT or CONTINUE")
    ('exit', 'continue', None)
    """
    match = _EXIT.fullmatch(reply)
    return match[1].casefold() if match else None

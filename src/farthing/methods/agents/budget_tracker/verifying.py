"""What follows an answer while there is budget: it is verified, then given, pursued or dropped.

Source: the verification step of BATS (arXiv 2511.17006): succeed, continue ("dig deeper") or
pivot. Its wording here, and that nothing is verified once a budget is critical, are ours.
"""

import re
from typing import Literal

from farthing.methods.agents.base import Allowance
from farthing.methods.agents.budget_tracker.tracker import regime_of

Outcome = Literal["succeed", "continue", "pivot"]

VERIFY = (
    "Before this answer is given: check every part of the question against the observations above. "
    "Reply with one word first: SUCCEED if all of it is supported, CONTINUE if this lead is good "
    "and something has yet to be looked up, PIVOT if this lead is wrong."
)
NEXT: dict[Outcome, str] = {
    "continue": "Dig deeper on this lead: look up what is not yet supported.",
    "pivot": "Leave this lead and try another one.",
}
"""What the agent is told after each outcome but success."""
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_OUTCOMES: dict[str, Outcome] = {"succeed": "succeed", "continue": "continue", "pivot": "pivot"}


def verifies(allowance: Allowance) -> bool:
    """Return whether an answer is worth verifying: there is budget to act on what comes of it."""
    return regime_of(allowance.share_left()) != "critical"


def read_outcome(text: str) -> Outcome:
    """Return what a reply decides: its first word; an answer that nobody objects to is given.

    >>> read_outcome("Pivot, since ..."), read_outcome("**CONTINUE**"), read_outcome("It is fine.")
    ('pivot', 'continue', 'succeed')
    """
    first = _WORD.search(text)
    return _OUTCOMES.get(first[0].lower(), "succeed") if first else "succeed"

"""The records of an episode: modes, experts, what was written by whom, what was called and paid.

An *episode* is one question in the hands of a controller. Everything here is frozen, and money is
integer nano-dollars.
"""

import re
from dataclasses import dataclass
from typing import Literal

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.traces.trace_kind import CONTROLLER, is_reply

Author = Literal["controller", "environment"]
Ending = Literal["answer", "turns", "budget", "failure"]
"""An answer was given; no turn was left; the controller could not be paid; its model failed."""
_NAME = re.compile(r"[^\s<>](?:[^\n<>]*[^\s<>])?")


@dataclass(frozen=True)
class Mode:
    """What a controller is told about money.

    >>> Mode("low", 2_000_000).budget_nano
    2000000
    """

    name: str
    """The word in the prompt: `low`, `medium`, `high`, or any other."""
    budget_nano: int
    """B(mode): an episode that costs more earns nothing, in nano-dollars."""

    def __post_init__(self) -> None:
        if self.budget_nano < 0:
            raise InputError(f"the mode '{self.name}' has a budget below $0; give at least $0")
        if not self.name.strip():
            raise InputError("a mode has no name; give a word, such as 'low'")


@dataclass(frozen=True)
class Expert:
    """Whom a controller may call, as its prompt says."""

    name: str
    """What the controller writes to call it."""
    price: str = ""
    """What a call costs, in words."""

    def __post_init__(self) -> None:
        taken = self.name == CONTROLLER or is_reply(self.name)
        if taken or not _NAME.fullmatch(self.name):
            raise InputError(
                f"an expert is called {self.name!r}; give a name on one line, without < and >, "
                f"that is not '{CONTROLLER}' and begins with neither policy- nor exit-"
            )


@dataclass(frozen=True)
class Segment:
    """A piece of an episode's text, after the prompt."""

    author: Author
    text: str
    ids: tuple[int, ...] = ()
    """Its tokens as they were sampled; empty where only the text is known."""
    logprobs: tuple[float, ...] = ()
    """Of each token when it was sampled; empty where nobody knows."""


@dataclass(frozen=True)
class MadeCall:
    """One call of an expert."""

    turn: int
    """The controller's turn that asked for it, from 1."""
    expert: str
    asked: str
    """The question that it was asked."""
    reply: str
    """What it replied; empty where it failed."""
    cost_nano: int
    """What was paid, also where it failed; the most that it could be where nobody knows."""
    usage: Usage | None = None
    error: str = ""
    """Why it failed; empty where it did not."""

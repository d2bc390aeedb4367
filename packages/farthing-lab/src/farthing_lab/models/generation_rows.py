"""What is generated from and what comes of it, whichever library the network runs in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from farthing.errors import InputError

Reason = Literal["end", "stop", "length"]
"""Why a row ended: at a token of `ends`, because `stop` said so, or at `max_tokens`."""


@dataclass(frozen=True)
class GenerationRow:
    """One prompt, and how it is to be continued."""

    ids: Sequence[int]
    """The prompt; at least one token."""
    max_tokens: int
    """Most tokens to take; at least 1."""
    temperature: float = 0.0
    """0 takes the likeliest token; above, tokens are drawn from softmax(logits / temperature)."""
    top_p: float = 1.0
    """Only the likeliest tokens are drawn that together have this probability."""
    seed: int | None = None
    """Seed of the row's own draws; without one they differ each time."""
    ends: frozenset[int] = frozenset()
    """Tokens that end the row; the one that did is its last."""
    stop: Callable[[Sequence[int]], bool] | None = None
    """Asked after each token, with all that were taken; True ends the row."""
    top_logprobs: int = 0
    """Alternatives to return for each token."""

    def __post_init__(self) -> None:
        if not self.ids or self.max_tokens < 1:
            raise InputError("a row needs at least one token, and room for one more")

    def reason(self, taken: Sequence[int]) -> Reason | None:
        """Return why the row ends after these tokens, at least one; None where it goes on."""
        if taken[-1] in self.ends:
            return "end"
        if self.stop is not None and self.stop(taken):
            return "stop"
        return "length" if len(taken) >= self.max_tokens else None


@dataclass(frozen=True)
class Generated:
    """What a row was continued with; each field but the last has an entry a token."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Natural logarithm of each token's probability at temperature 1, among all tokens, after the
    hooks; without any it is what the network itself says."""
    top: tuple[tuple[tuple[int, float], ...], ...]
    """(token, log-probability) of the likeliest ones in each place, likeliest first."""
    reason: Reason

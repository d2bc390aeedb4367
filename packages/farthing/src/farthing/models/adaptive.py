"""As many calls at once as endpoints take: from few to many, and fewer where they refuse.

The number under way grows with each success, doubling in the time of one reply, until an endpoint
refuses (429, or no connection); then it halves, and grows by one in the time of one reply (additive
increase, multiplicative decrease; Chiu and Jain 1989, as in TCP's congestion control).
"""

import asyncio
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from farthing.errors import (
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
    UnreachableError,
)
from farthing.models.base import Completion, Model, Prompt, WrappedModel

FIRST = 8
"""Under way at the beginning."""
_OVERLOADED = (RateLimitError, ModelConnectionError, ModelTimeoutError)


class Gate:
    """Lets so many through at a time as has gone well.

    >>> gate = Gate(most=100)
    >>> gate.allowed
    8
    >>> for _ in range(8):
    ...     gate.succeeded()
    >>> gate.allowed
    16
    >>> gate.refused()
    >>> gate.allowed
    8
    """

    def __init__(self, most: int, first: int = FIRST) -> None:
        self._most = most
        self._allowed = float(min(first, most))
        self._doubling = True
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._since_halved = FIRST
        self.unreached: dict[str, str] = {}
        """Model to the failure that says so, of those that nobody could connect to so far."""

    @property
    def allowed(self) -> int:
        """How many may be under way now."""
        return int(self._allowed)

    def succeeded(self) -> None:
        """Note a reply."""
        step = 1.0 if self._doubling else 1.0 / self._allowed
        self._allowed = min(float(self._most), self._allowed + step)
        self._since_halved += 1
        self._admit()

    def refused(self) -> None:
        """Note a refusal; those of calls that were under way together count once."""
        self._since_halved += 1
        if self._since_halved < self._allowed:
            return
        self._doubling = False
        self._since_halved = 0
        self._allowed = max(1.0, self._allowed / 2)

    def dead(self, failed: Mapping[str, str]) -> str | None:
        """Return why a question failed that nobody could connect to a model for; None: none did.

        >>> gate = Gate(most=100)
        >>> gate.unreached["nano"] = "nano: no connection"
        >>> gate.dead({"q1": "nano: too late"}), gate.dead({"q2": "round 1: nano: no connection"})
        (None, 'nano: no connection')
        """
        whys = self.unreached.values()
        return next((why for why in whys if any(why in said for said in failed.values())), None)

    async def __aenter__(self) -> Self:
        if self._inside < self.allowed and not self._waiting:
            self._inside += 1
            return self
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._leave()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        self._inside -= 1
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._inside < self.allowed:
            place = self._waiting.popleft()
            if not place.done():
                self._inside += 1
                place.set_result(None)


class Noticed(WrappedModel):
    """A model whose replies and refusals set how many calls a gate lets through."""

    def __init__(self, model: Model, gate: Gate) -> None:
        super().__init__(model)
        self._gate = gate
        self._reached = False

    async def complete(self, prompt: Prompt) -> Completion:
        """Answer one prompt; the gate learns how it went."""
        try:
            completion = await self._model.complete(prompt)
        except ModelError as error:
            self._note(error)
            raise
        self._note(None)
        return completion

    def _note(self, error: ModelError | None) -> None:
        if error is None:
            self._gate.succeeded()
        elif isinstance(error, _OVERLOADED):
            self._gate.refused()
        self._reached |= not isinstance(error, UnreachableError)
        if self._reached:
            self._gate.unreached.pop(self.name, None)
        else:
            self._gate.unreached[self.name] = str(error)

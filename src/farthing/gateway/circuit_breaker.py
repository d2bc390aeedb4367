"""Models that failed again and again are left alone for a while, where others may stand in.

Each worker finds out by itself, and forgets it when it ends.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from farthing.errors import BadRequestError, ContentRefusedError, ContextTooLongError
from farthing.gateway.charging import ChargeAttempt, CircuitOpenError
from farthing.models.config import ModelsConfig

FAILURES = 3
"""Requests in a row that a model fails before it is left alone."""
TRIES = 2
"""Most tries of a model before its fallbacks are asked."""
PAID = 1
"""Most tries again after one that may have to be paid, where a section does not say."""
ASKED_S = 5.0
"""Most seconds that a provider may ask to wait for; one that asks for more, the client hears of."""
_AT_FAULT = frozenset({BadRequestError.kind, ContentRefusedError.kind, ContextTooLongError.kind})
"""Failures that say nothing of the model."""


def limit_retries(models: ModelsConfig, fallbacks: Collection[str]) -> ModelsConfig:
    """Return models that are tried as one tries for a client who waits.

    Args:
        models: as they are configured.
        fallbacks: names of those that others may stand in for.
    """
    sections = {}
    for name, section in models.sections.items():
        allowed = section.patience
        asked_s = ASKED_S if allowed.asked_s is None else allowed.asked_s
        tries = min(allowed.tries, TRIES) if name in fallbacks else allowed.tries
        paid = PAID if allowed.paid is None else allowed.paid
        patience = msgspec.structs.replace(allowed, asked_s=asked_s, tries=tries, paid=paid)
        sections[name] = replace(section, patience=patience)
    return replace(models, sections=sections)


@dataclass
class CircuitBreaker:
    """Which models are left alone now.

    >>> clock = iter([0.0, 1.0, 10.0, 10.0, 10.1]).__next__  # when it is asked
    >>> breaker = CircuitBreaker(10.0, {"large"}, clock)
    >>> for _ in range(FAILURES):
    ...     breaker.failed("large")
    >>> breaker.is_open("large"), breaker.is_open("large"), breaker.is_open("large")
    (True, False, True)
    """

    seconds: float
    """How long; 0: never."""
    models: Collection[str]
    """Those that others may stand in for."""
    now: Callable[[], float] = time.monotonic
    _failures: dict[str, int] = field(default_factory=dict)
    """Requests in a row that a model failed."""
    _until: dict[str, float] = field(default_factory=dict)

    def is_open(self, name: str) -> bool:
        """Return whether a model is left alone; after the pause one request may try it."""
        if self._rests(name):
            return True
        self.begin(name)
        return False

    def ready(self, line: Sequence[str]) -> list[str]:
        """Return who of a line may be asked: all, where each one would be left alone."""
        return [name for name in line if not self._rests(name)] or list(line)

    def begin(self, name: str) -> None:
        """Note that a request tries a model: after a pause the others wait for what it finds."""
        if name in self._until:
            self._until[name] = self.now() + self.seconds

    def _rests(self, name: str) -> bool:
        return name in self._until and self.now() < self._until[name]

    def failed(self, name: str) -> None:
        """Count a request that a model failed."""
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] >= FAILURES and self.seconds > 0 and name in self.models:
            self._until[name] = self.now() + self.seconds

    def answered(self, name: str) -> None:
        """Note that a model answers."""
        self._failures.pop(name, None)
        self._until.pop(name, None)

    def record(self, tries: Sequence[ChargeAttempt]) -> None:
        """Note what came of a request; a try that was cut off says nothing."""
        for name in {one.model for one in tries}:
            own = [one for one in tries if one.model == name]
            error = own[-1].error
            if any(one.answered for one in own):
                self.answered(name)
            elif error is not None and error.type not in {*_AT_FAULT, CircuitOpenError.kind}:
                self.failed(name)

"""Models that failed again and again are left alone for a while, where others may stand in.

Each worker finds out by itself, and forgets it when it ends.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec

from farthing.errors import BadRequestError, ContentRefusedError, ContextTooLongError
from farthing.models.config import ModelsConfig
from farthing.models.thinking import split_name
from farthing_gateway.charging import ChargeAttempt, CircuitOpenError

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


def with_efforts(
    fallbacks: Mapping[str, Sequence[str]], names: Iterable[str]
) -> dict[str, list[str]]:
    """Return fallbacks in which a model at an effort has its model's, where it has none of its own.

    Args:
        fallbacks: model to those that are asked in turn where it fails.
        names: of all models.

    >>> with_efforts({"o4": ["o4@low", "small"]}, ["o4", "o4@low", "small"])
    {'o4': ['o4@low', 'small'], 'o4@low': ['small']}
    """
    found = {name: list(others) for name, others in fallbacks.items()}
    for name in names:
        others = [one for one in fallbacks.get(split_name(name)[0], ()) if one != name]
        if others:
            found.setdefault(name, others)
    return found


@dataclass
class CircuitBreaker:
    """Which models are left alone now.

    A model at an effort is its model here, unless fallbacks name it as one of their own.

    >>> clock = iter([0.0, 1.0, 10.0, 10.0, 10.1]).__next__  # when it is asked
    >>> breaker = CircuitBreaker(10.0, {"large": ["small"]}, clock)
    >>> for _ in range(FAILURES):
    ...     breaker.failed("large")
    >>> breaker.is_open("large"), breaker.is_open("large"), breaker.is_open("large")
    (True, False, True)
    """

    seconds: float
    """How long; 0: never."""
    fallbacks: Mapping[str, Sequence[str]]
    """Models that others may stand in for, to these, as they are configured."""
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
        model = self._model(name)
        if model in self._until:
            self._until[model] = self.now() + self.seconds

    def _rests(self, name: str) -> bool:
        model = self._model(name)
        return model in self._until and self.now() < self._until[model]

    def failed(self, name: str) -> None:
        """Count a request that a model failed."""
        model = self._model(name)
        self._failures[model] = self._failures.get(model, 0) + 1
        if self._failures[model] >= FAILURES and self.seconds > 0 and model in self.fallbacks:
            self._until[model] = self.now() + self.seconds

    def answered(self, name: str) -> None:
        """Note that a model answers."""
        self._failures.pop(self._model(name), None)
        self._until.pop(self._model(name), None)

    def _model(self, name: str) -> str:
        return name if name in self._named else split_name(name)[0]

    @cached_property
    def _named(self) -> frozenset[str]:
        """The models that fallbacks name, so that each is one by itself."""
        return frozenset(self.fallbacks).union(*self.fallbacks.values())

    def record(self, tries: Sequence[ChargeAttempt]) -> None:
        """Note what came of a request; a try that was cut off says nothing."""
        for name in {one.model for one in tries}:
            own = [one for one in tries if one.model == name]
            error = own[-1].error
            if any(one.answered for one in own):
                self.answered(name)
            elif error is not None and error.type not in {*_AT_FAULT, CircuitOpenError.kind}:
                self.failed(name)

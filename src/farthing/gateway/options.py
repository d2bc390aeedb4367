"""What a request says to Farthing itself: in the object `farthing` of its body, or in headers."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

from farthing.errors import BadRequestError
from farthing.money import NANO_PER_USD

MOST_USD = 1_000_000.0
"""Largest budget that a request may name."""
MOST_SECONDS = 86_400.0
"""Longest deadline that a request may name."""
MOST_GROUP = 64
"""Longest name of a group."""


class RequestError(BadRequestError):
    """A request that cannot be served as it is; `param` names the field, where there is one.

    >>> error = RequestError("'n' must be a whole number from 1 to 128", "n")
    >>> print(error, error.param)
    'n' must be a whole number from 1 to 128 n
    """

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param


@dataclass(frozen=True)
class RequestOptions:
    """What a request says to Farthing itself; None where it says nothing."""

    reliability: Fraction | None = None
    """Share of answers that must be right, more than 0 and less than 1."""
    budget_nano: int | None = None
    """Most that it may cost, in nano-dollars."""
    mode: str | None = None
    """How the bundle is to behave, by a name that it knows."""
    deadline_s: float | None = None
    """Seconds in which the reply is wanted."""
    conversation: str | None = None
    """Name of the conversation that it belongs to."""
    group: str | None = None
    """Name of the group of requests that it belongs to, for which promises are watched apart."""

    @property
    def choose(self) -> bool:
        """Whether it says itself how it is to be answered."""
        return any(one is not None for one in (self.reliability, self.budget_nano, self.mode))


def read_options(said: Any, headers: Mapping[str, str]) -> RequestOptions:
    """Read the object `farthing` of a body and the headers `X-Farthing-...`; the body goes first.

    >>> headers = {"X-Farthing-Budget": "1", "X-Farthing-Mode": "m"}
    >>> options = read_options({"budget": 0.002}, headers)
    >>> options.budget_nano, options.mode, options.reliability
    (2000000, 'm', None)
    """
    if said is not None and not isinstance(said, dict):
        raise RequestError("'farthing' must be an object", "farthing")
    given = {name: value for name, value in (said or {}).items() if value is not None}
    for name in given:
        if name not in _WISHES:
            known = ", ".join(sorted(_WISHES))
            raise RequestError(f"'farthing' has no field '{name}', only {known}", "farthing")
    wanted = {f"x-farthing-{name}": name for name in _WISHES}
    asked = {wanted[low]: text for key, text in headers.items() if (low := key.lower()) in wanted}
    found = RequestOptions()
    for name, value in (asked | given).items():
        place = f"farthing.{name}" if name in given else f"X-Farthing-{name.capitalize()}"
        found = replace(found, **_WISHES[name](value, place))
    return found


def _reliability(value: Any, place: str) -> dict[str, Any]:
    share = _number(value)
    if not 0 < share < 1:
        raise RequestError(f"'{place}' must be more than 0 and less than 1", place)
    return {"reliability": Fraction(repr(share))}


def _budget(value: Any, place: str) -> dict[str, Any]:
    usd = _number(value)
    if not 0 <= usd <= MOST_USD:
        raise RequestError(f"'{place}' must be an amount in USD from 0 to {MOST_USD:,.0f}", place)
    nano = Decimal(repr(usd)) * NANO_PER_USD
    return {"budget_nano": int(nano.to_integral_value(rounding=ROUND_FLOOR))}


def _deadline(value: Any, place: str) -> dict[str, Any]:
    seconds = _number(value)
    if not 0 < seconds <= MOST_SECONDS:
        most = f"more than 0 and at most {MOST_SECONDS:,.0f}"
        raise RequestError(f"'{place}' must be {most}, in seconds", place)
    return {"deadline_s": seconds}


def _mode(value: Any, place: str) -> dict[str, Any]:
    return {"mode": _name(value, place, 64)}


def _conversation(value: Any, place: str) -> dict[str, Any]:
    return {"conversation": _name(value, place, 256)}


def _group(value: Any, place: str) -> dict[str, Any]:
    return {"group": _name(value, place, MOST_GROUP)}


def _name(value: Any, place: str, most: int) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= most or not value.isprintable():
        raise RequestError(f"'{place}' must be a text of 1 to {most} printable characters", place)
    return value


def _number(value: Any) -> float:
    """Return a number that is one or, as headers do, spells one; NaN is in no range."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


_WISHES: dict[str, Callable[[Any, str], dict[str, Any]]] = {
    "reliability": _reliability,
    "budget": _budget,
    "mode": _mode,
    "deadline": _deadline,
    "conversation": _conversation,
    "group": _group,
}

"""What a request says to Farthing itself: in the object `farthing` of its body, or in headers."""

from collections.abc import Mapping
from decimal import ROUND_FLOOR, Decimal
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from farthing.money import NANO_PER_USD
from farthing_gateway.request_schema import RequestError, checked

MOST_USD = 1_000_000
"""Largest budget that a request may name."""
MOST_GROUP = 64
"""Longest name of a group."""
_PREFIX = "x-farthing-"
_NUMBERS = frozenset({"reliability", "budget", "deadline"})
_PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"
Name = Annotated[str, Meta(min_length=1, max_length=MOST_GROUP, pattern=_PRINTABLE)]


class RequestOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a request says to Farthing itself; None where it says nothing."""

    reliability: (
        Annotated[float, Meta(gt=0, lt=1, description="Least reliability that must be proved")]
        | None
    ) = None
    """Share of answers that must be right."""
    budget: Annotated[float, Meta(ge=0, le=MOST_USD, description="Most US dollars")] | None = None
    """Most that it may cost, in USD."""
    mode: Annotated[Name, Meta(description="A mode of the policy")] | None = None
    """How the bundle is to behave, by a name that it knows."""
    deadline: Annotated[float, Meta(gt=0, le=86_400, description="Seconds")] | None = None
    """Seconds in which the reply is wanted."""
    conversation: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=256,
                pattern=_PRINTABLE,
                description="A name for the conversation that it belongs to",
            ),
        ]
        | None
    ) = None
    group: (
        Annotated[Name, Meta(description="A group of requests whose promise is watched apart")]
        | None
    ) = None

    @property
    def budget_nano(self) -> int | None:
        """The budget in nano-dollars, rounded down."""
        if self.budget is None:
            return None
        nano = Decimal(repr(self.budget)) * NANO_PER_USD
        return int(nano.to_integral_value(rounding=ROUND_FLOOR))

    @property
    def choose(self) -> bool:
        """Whether it says itself how it is to be answered."""
        return any(one is not None for one in (self.reliability, self.budget, self.mode))


_NOTHING = RequestOptions()


def read_options(said: Any, headers: Mapping[str, str]) -> RequestOptions:
    """Read the object `farthing` of a body and the headers `X-Farthing-...`; the body goes first.

    >>> headers = {"X-Farthing-Budget": "1", "X-Farthing-Mode": "m"}
    >>> options = read_options({"budget": 0.002}, headers)
    >>> options.budget_nano, options.mode, options.reliability
    (2000000, 'm', None)
    """
    if said is not None and not isinstance(said, dict):
        raise RequestError("'farthing' must be an object", "farthing")
    spelt = {
        name: text
        for key, text in headers.items()
        if (name := key.lower()).startswith(_PREFIX)
        and (name := name.removeprefix(_PREFIX)) in RequestOptions.__struct_fields__
    }
    if not said and not spelt:
        return _NOTHING
    found = msgspec.structs.asdict(_read(said or {}, "farthing."))
    for name, text in spelt.items():
        if found[name] is None:
            place = f"X-Farthing-{name.capitalize()}"
            try:
                found[name] = getattr(_read({name: text}, ""), name)
            except RequestError as error:
                said = str(error).replace(f"'{name}'", f"'{place}'", 1)
                raise RequestError(said, place) from None
    return RequestOptions(**found)


def _read(said: Mapping[str, Any], within: str) -> RequestOptions:
    """Read fields; a number may be spelt as a text, as headers do."""
    given = {name: value for name, value in said.items() if value is not None}
    for name in _NUMBERS & given.keys():
        if isinstance(given[name], str):
            try:
                given[name] = float(given[name])
            except ValueError:
                continue
    return checked(given, RequestOptions, within)

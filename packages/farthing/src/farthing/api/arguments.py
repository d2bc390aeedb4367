"""What the door is given, checked: what is wrong is refused in one line, as the command line does.

Each function returns what it was given, in the type that the rooms below expect, or raises an
InputError that says what was wrong and what to give instead.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Real
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing import plugins
from farthing.errors import InputError
from farthing.methods.base import Dataset, Method
from farthing.models.prices import TokenPrice, token_price
from farthing.money import NANO_PER_USD, nano_from_usd
from farthing.traces.eligibility import MISSING, Missing
from farthing.traces.importers.base import Options
from farthing.traces.importers.read import Supplied

if TYPE_CHECKING:
    from farthing.models.base import Model

_MOST_USD = 10**9
"""Above it nano-dollars no longer fit into 64 bits."""


def shown(value: object) -> str:
    """Return what a value looks like on one line, and of what is long its type.

    >>> shown("gpt-4o"), shown([0] * 1000)
    ("'gpt-4o'", 'of type list')
    """
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"of type {type(value).__name__}"


def path_of(value: str | Path, what: str) -> Path:
    """Read a path; `what` is that of which it is one, such as `the bundle`."""
    try:
        path = Path(value)
    except TypeError:
        path = Path("\0")
    if "\0" in str(path) or value == "":
        raise InputError(f"the path of {what} is {shown(value)}; give one, such as 'runs/first'")
    return path


def text_of(value: object, what: str, such_as: str) -> str:
    """Read a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{what} is {shown(value)}; give a text, such as {such_as!r}")
    return value


def registered(method: object, dataset: Dataset) -> str:
    """Register a method of one's own for this process, and return its name.

    A learner alone is called after its class, and works on a pool or else in rounds, or in its own
    `space`.
    """
    if isinstance(method, Method):
        plugins.add("methods", method.name, method)
        return method.name
    if isinstance(method, type) or not callable(getattr(method, "fit", None)):
        raise InputError(
            f"the method is {shown(method)}; give a name, such as 'lookahead', or an object with "
            "fit(train, alpha, seed, progress)"
        )
    label = type(method).__name__.removesuffix("Learner") or "Own"
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", label).strip("_").lower()
    space: Any = getattr(method, "space", "pool" if dataset.is_pool else "rounds")
    learner: Any = method
    card = Method(name, label, "Of this process", type(method), learner, action_spaces=(space,))
    plugins.add("methods", name, card)
    return name


def missing_of(value: Missing | None) -> Missing | None:
    """Read what to take of calls that were not made."""
    if value is not None and value not in MISSING:
        raise InputError(f"missing is {shown(value)}; give one of {', '.join(MISSING)}, or None")
    return value


def whole_of(value: int, what: str, least: int) -> int:
    """Read a whole number; numpy's count as well."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(f"{what} is {shown(value)}; give a whole number from {least} on")
    return number


def names_of(value: object, what: str) -> tuple[str, ...]:
    """Read names; a single one may stand alone."""
    given = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    names = [name for name in given if isinstance(name, str) and name]
    if len(names) < len(given):
        raise InputError(f"{what} are {shown(value)}; give a list of names")
    return tuple(names)


def nano_of(usd: float, what: str) -> int:
    """Read an amount of money, in nano-dollars."""
    try:
        nano = nano_from_usd(usd)
    except (TypeError, ValueError, ArithmeticError):
        nano = -1
    if not 0 <= nano <= _MOST_USD * NANO_PER_USD:
        raise InputError(f"{what} is {shown(usd)}; give US dollars, such as 0.001")
    return nano


def supplied_by(
    columns: Mapping[str, str] | None,
    prices: Mapping[str, tuple[float, float]] | None,
) -> Supplied:
    """Read what is said of a table that does not say it itself."""
    for what, given in (("columns", columns), ("prices", prices)):
        if given is not None and not isinstance(given, Mapping):
            raise InputError(f"{what} is {shown(given)}; give a dictionary")
    return Supplied(
        prices={model: _token_price(model, usd) for model, usd in (prices or {}).items()},
        options=Options(columns=dict(columns or {})),
    )


def _token_price(model: str, usd: Iterable[float]) -> TokenPrice:
    """Read US dollars per million tokens that a model reads and writes, and of its cache."""
    try:
        each = [Decimal(repr(float(one))) for one in usd]
    except (TypeError, ValueError):
        each = []
    sound = all(one.is_finite() and 0 <= one < _MOST_USD for one in each)
    if not (2 <= len(each) <= 5 and sound):
        raise InputError(
            f"the price of {model} is {shown(usd)}; give US dollars per million tokens that it "
            "reads and writes, such as (2.5, 10)"
        )
    try:
        return token_price(each)
    except ValueError as problem:
        raise InputError(f"the price of {model}: {problem}") from None


def seconds_of(value: object, what: str) -> float:
    """Read a time in seconds, from 0 on."""
    seconds = float(value) if isinstance(value, Real | Decimal) else -1.0
    if not 0 <= seconds < float("inf"):
        raise InputError(f"{what} is {shown(value)}; give seconds, such as 2.5")
    return seconds


def models_of(models: "Mapping[str, Model]") -> "Mapping[str, Model]":
    """Read who answers, by role."""
    if not isinstance(models, Mapping):
        raise InputError(f"models are {shown(models)}; give a dictionary, a model for each role")
    for role, model in models.items():
        if not _answers(model):
            raise InputError(
                f"the model of {role} is {shown(model)}, which answers no prompts; give a model "
                "of farthing.models, or an object like one"
            )
    return models


def _answers(model: Any) -> bool:
    asked = callable(getattr(model, "complete", None))
    priced = callable(getattr(model, "largest_cost_nano", None))
    return asked and priced and hasattr(model, "name") and not isinstance(model, type)

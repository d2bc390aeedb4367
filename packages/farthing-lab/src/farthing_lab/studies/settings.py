"""Which settings of a learner there are, and which of them a sweep tries."""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from typing import Any, Literal, get_origin, get_type_hints

import msgspec
import numpy as np

from farthing.errors import InputError, UnknownNameError

Value = int | float | str | bool
Settings = Mapping[str, Value]
"""Name of a setting to its value, such as `leaf` to 10."""

KINDS = (int, float, str, bool)
INNER = "config"
"""The field that most learners keep their settings in; names leave it out."""
LIMITS: Mapping[Any, tuple[float, float]] = {int: (1, 1_000_000), float: (0, sys.float_info.max)}
"""The least and the most that a number can be: no setting is negative, not finite, or absurd."""
MORE_DRAWS = 100
"""Draws for each setting that is wanted, before a small space is given up on as exhausted."""


@dataclass(frozen=True)
class ValueList:
    """Values to try, one after another."""

    values: tuple[Value, ...]

    def draw(self, rng: np.random.Generator) -> Value:
        return self.values[int(rng.integers(len(self.values)))]


@dataclass(frozen=True)
class Range:
    """Values from `low` to `high`, ends included."""

    low: float
    high: float
    whole: bool
    """Whether only whole numbers belong."""

    def draw(self, rng: np.random.Generator) -> Value:
        """Draw evenly on a logarithmic scale, or on a plain one where that begins at 0."""
        if self.low > 0:
            drawn = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        else:
            drawn = rng.uniform(self.low, self.high)
        drawn = min(max(drawn, self.low), self.high)
        return round(drawn) if self.whole else float(f"{drawn:.4g}")


Choice = ValueList | Range


def settings_of(learner: Any) -> dict[str, Value]:
    """Return every setting of a learner that a user may set, with its present value.

    >>> from farthing_lab.methods.ccpo.learner import CcpoLearner
    >>> found = settings_of(CcpoLearner())
    >>> found["batch"], found["region.radius"]
    (10, 0.01)
    """
    return {_spoken(path): value for path, value, _ in _leaves(learner)}


def with_settings(learner: Any, settings: Settings) -> Any:
    """Return the same learner with some settings changed.

    >>> from farthing_lab.methods.ccpo.learner import CcpoLearner
    >>> with_settings(CcpoLearner(), {"region.radius": 0.02}).config.region.radius
    0.02
    """
    places = {_spoken(path): path for path, _, _ in _leaves(learner)}
    for name, value in settings.items():
        learner = _replaced(learner, places[name], value)
    return learner


def read_choice(learner: Any, text: str) -> tuple[str, Choice]:
    """Read `NAME=VALUE,...` or `NAME=LOW..HIGH`.

    >>> from farthing_lab.methods.ccpo.learner import CcpoLearner
    >>> read_choice(CcpoLearner(), "batch=10,20")
    ('batch', ValueList(values=(10, 20)))
    >>> read_choice(CcpoLearner(), "epsilon=0.001..0.1")
    ('epsilon', Range(low=0.001, high=0.1, whole=False))
    """
    name, _, values = text.partition("=")
    kinds = {_spoken(path): kind for path, _, kind in _leaves(learner)}
    if name not in kinds:
        raise UnknownNameError("setting", name, kinds)
    kind = kinds[name]
    low, dots, high = values.partition("..")
    if dots and kind in {int, float}:
        least, most = _read(name, kind, low), _read(name, kind, high)
        if not float(least) < float(most):
            raise InputError(
                f"{name}: the range {least}..{most} is empty; put the smaller end first"
            )
        return name, Range(float(least), float(most), isinstance(least, int))
    read = [_read(name, kind, value.strip()) for value in values.split(",")]
    return name, ValueList(tuple(dict.fromkeys(read)))


def tried(
    choices: Mapping[str, Choice], draw: int | None, rng: np.random.Generator
) -> list[Settings]:
    """Return the settings to try, without doubles: the whole grid, or so many drawn at random.

    More draws from the same generator state begin with the same settings. A grid that is no larger
    than the number asked for is tried as a whole.
    """
    listed = {name: c.values for name, c in choices.items() if isinstance(c, ValueList)}
    ranges = [name for name in choices if name not in listed]
    if draw is None:
        if ranges:
            raise InputError(f"{', '.join(ranges)}: a range has no grid; add --draw 20")
        return list(_grid(listed))
    if not ranges and math.prod(len(values) for values in listed.values()) <= draw:
        return list(_grid(listed))
    found: dict[tuple[Value, ...], Settings] = {}
    for _ in range(MORE_DRAWS * draw):
        settings = {name: choice.draw(rng) for name, choice in choices.items()}
        found.setdefault(tuple(settings.values()), settings)
        if len(found) == draw:
            break
    return list(found.values())


def written(settings: Settings) -> str:
    """Write settings as people do.

    >>> written({"leaf": 10, "trees": 32}), written({})
    ('leaf=10 trees=32', 'unchanged')
    """
    texts = [
        f"{name}={f'{value:.6g}' if isinstance(value, float) else value}"
        for name, value in settings.items()
    ]
    return " ".join(texts) or "unchanged"


def _grid(listed: Mapping[str, Sequence[Value]]) -> Iterable[Settings]:
    return (dict(zip(listed, values, strict=True)) for values in product(*listed.values()))


def _leaves(learner: Any, above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Value, Any]]:
    """Return the path, value and type of every number, word and switch in nested dataclasses."""
    found: list[tuple[tuple[str, ...], Value, Any]] = []
    if not is_dataclass(learner):
        return found
    kinds = get_type_hints(type(learner))
    for field in fields(learner):
        path, value, kind = (*above, field.name), getattr(learner, field.name), kinds[field.name]
        if is_dataclass(value):
            found += _leaves(value, path)
        elif kind in KINDS or get_origin(kind) is Literal:
            found.append((path, value, kind))
    return found


def _spoken(path: tuple[str, ...]) -> str:
    return ".".join(path[1:] if path[0] == INNER else path)


def _replaced(learner: Any, path: tuple[str, ...], value: Value) -> Any:
    name, *below = path
    if below:
        value = _replaced(getattr(learner, name), tuple(below), value)
    return replace(learner, **{name: value})


def _read(name: str, kind: Any, text: str) -> Value:
    """Read one value: a whole number from 1, a number from 0, or one of a few words."""
    try:
        value: Value = msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        raise InputError(f"{name}: {text!r} is no {_wanted(kind)}") from None
    least, most = LIMITS.get(kind, (-math.inf, math.inf))
    if not isinstance(value, str) and not least <= value <= most:
        raise InputError(f"{name}: {text!r} is no {_wanted(kind)}")
    return value


def _wanted(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"value of it; choose from {', '.join(kind.__args__)}"
    return {
        int: "whole number from 1 to 1,000,000",
        float: "number from 0 up",
        bool: "switch; say true or false",
    }.get(kind, "value of it")

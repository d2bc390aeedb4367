"""Save a policy field by field: its arrays by name, and what else it has as JSON values.

Infinite numbers are kept as the largest finite ones, which compare alike; bundles refuse infinity.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Self, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Array = NDArray[Any]
_LARGEST = np.finfo(np.float64).max


class DataclassState:
    """A policy, as a dataclass, whose fields are all that there is to save."""

    def to_state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and the settings that a bundle keeps."""
        return state_of(self)

    @classmethod
    def from_state(cls, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        return rebuilt(cls, arrays, settings)


def state_of(policy: Any) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and the settings of a dataclass, those of its parts under dotted names."""
    arrays: dict[str, Array] = {}
    settings: dict[str, Any] = {}
    for field in fields(policy):
        _keep(field.name, getattr(policy, field.name), arrays, settings)
    return arrays, settings


def _keep(name: str, value: Any, arrays: dict[str, Array], settings: dict[str, Any]) -> None:
    if isinstance(value, np.ndarray):
        arrays[name] = value.astype(np.uint8) if value.dtype == np.bool_ else finite(value)
    elif is_dataclass(value):
        for field in fields(value):
            _keep(f"{name}.{field.name}", getattr(value, field.name), arrays, settings)
    elif isinstance(value, tuple) and any(isinstance(part, np.ndarray | tuple) for part in value):
        settings[name] = len(value)
        for i, part in enumerate(value):
            _keep(f"{name}.{i}", part, arrays, settings)
    else:
        settings[name] = list(value) if isinstance(value, tuple) else value


def finite(value: Array) -> Array:
    """Return an array with infinite numbers as the largest finite ones."""
    return np.clip(value, -_LARGEST, _LARGEST) if value.dtype.kind == "f" else value


def under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin with a prefix, named without it."""
    return {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}


def rebuilt(kind: type[T], arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> T:
    """Rebuild a dataclass from what `state_of` returned."""
    found: T = _built(kind, "", arrays, settings)
    return found


def _built(kind: Any, prefix: str, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Any:
    hints = get_type_hints(kind)
    values = {
        field.name: _value(hints[field.name], prefix + field.name, arrays, settings)
        for field in fields(kind)
    }
    return kind(**values)


def _value(hint: Any, name: str, arrays: Mapping[str, Array], settings: Mapping[str, Any]) -> Any:
    if is_dataclass(hint):
        return _built(hint, f"{name}.", arrays, settings)
    if name in arrays:
        scalar = get_args(get_args(hint)[1])[0] if get_origin(hint) is np.ndarray else None
        return arrays[name].astype(np.bool_) if scalar is np.bool_ else arrays[name]
    if get_origin(hint) is tuple and isinstance(settings[name], int):
        parts = get_args(hint)
        of = [parts[0] if parts[-1] is Ellipsis else parts[i] for i in range(settings[name])]
        return tuple(_value(part, f"{name}.{i}", arrays, settings) for i, part in enumerate(of))
    return tuple(settings[name]) if get_origin(hint) is tuple else settings[name]

"""Which questions a step of one bundle works on: the same division at every step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.promises.base import Promise
from farthing.traces.arrays import TraceArrays
from farthing.traces.origin import as_asked, roles_asked
from farthing.traces.splits import Divisible, Parts, fixed_parts

Sizes = Mapping[str, int | None]
"""Questions to `train`, `calibrate` and `test`; what is not given is its share."""


@dataclass(frozen=True)
class Split:
    """How questions are divided: the same at every step, so that none is used twice."""

    seed: int = 0
    """Of the division, of the training, and of whatever a step draws."""
    sizes: Sizes = field(default_factory=dict)


DEFAULT = Split()


def split_bundle_questions(arrays: Divisible, split: Split) -> Parts:
    """Return the parts that every step works on."""
    return fixed_parts(arrays, np.random.default_rng(split.seed), **split.sizes)


def sizes_of(parts: Parts) -> dict[str, int]:
    """Return how many questions each part has."""
    return {"train": len(parts.train), "calibrate": len(parts.calibrate), "test": len(parts.test)}


def open_bundle(
    folder: str | Path, traces: TraceArrays, split: Split
) -> tuple[Bundle, TraceArrays, Parts]:
    """Load a bundle and lay the traces out for it."""
    bundle = bundles.load(folder)
    arrays = as_played(folder, bundle, traces)
    return bundle, arrays, split_bundle_questions(arrays, split)


def as_played(folder: str | Path, bundle: Bundle, traces: TraceArrays) -> TraceArrays:
    """Return traces as the bundle plays them; raise InputError where it cannot."""
    arrays = as_asked(traces, bundle.origin)
    check_kind(folder, bundle, arrays)
    return arrays


def models_of(bundle: Bundle, asked: Promise | None, traces: TraceArrays) -> tuple[str, ...]:
    """Return the roles that a proof about a bundle needs: whom it may ask; last, the reference."""
    asks = roles_asked(traces, bundle.origin)
    named = None if asked is None else asked.reference or asked.passes_to
    reference = named or bundle.origin.reference
    if reference not in traces.roles:
        return asks
    return (*(role for role in asks if role != reference), reference)


def check_kind(folder: str | Path, bundle: Bundle, arrays: TraceArrays) -> None:
    """Refuse traces, as they are played, of other roles or rounds than a bundle's."""
    theirs, ours = bundle.origin, (arrays.roles, arrays.horizon)
    if (theirs.roles, theirs.horizon) != ours:
        raise InputError(
            f"{folder}: the policy was trained for {_kind(theirs.roles, theirs.horizon)}, these "
            f"traces have {_kind(*ours)}; use traces of the same kind, or train on these"
        )


def _kind(roles: tuple[str, ...], horizon: int) -> str:
    return f"{horizon} rounds of {' and '.join(roles)}"

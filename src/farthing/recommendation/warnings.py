"""What speaks against trusting a bundle on some questions."""

from collections.abc import Collection

import numpy as np

from farthing.bundle.base import Bundle
from farthing.traces.arrays import FloatArray, IntArray, TraceArrays
from farthing.traces.fingerprint import fingerprint
from farthing.traces.splits import Parts
from farthing.traces.system import System, changes

FEW, SURELY = 30, 4.0
"""Questions below which nothing is said of their kind; standard errors that chance seldom has."""
STRANGERS = (
    "the bundle was not trained on the training part of these traces (another file, seed or size): "
    "make sure that none of these questions trained it"
)

SAME_OPTIONS = "give the same --seed, --train, --calibrate and --test to every step"
AS_BEFORE = f"take other questions, or, on the command line, {SAME_OPTIONS}"


def doubts(
    bundle: Bundle, recorded: TraceArrays, arrays: TraceArrays, parts: Parts
) -> tuple[str, ...]:
    """Say what speaks against trusting a bundle on questions, as recorded and as it plays them."""
    unknown = "train" not in bundle.questions
    pairs = zip(recorded.roles, recorded.models, strict=True)
    others = other_models(bundle, arrays.models, [role for role, model in pairs if not model])
    if unknown and fingerprint(arrays.take(parts.train)) != bundle.origin.fingerprint:
        return STRANGERS, *others
    return others


def unlike(recorded: TraceArrays, rows: IntArray) -> str | None:
    """Say so where questions that were asked of all are unlike those that lack calls.

    A model that was asked some of either is right more often, or costs more, on one kind than
    chance explains: then the missing calls are not missing by chance.

    Args:
        recorded: a pool.
        rows: the questions that every model in question was asked.
    """
    among = np.zeros(len(recorded), dtype=bool)
    among[rows] = True
    for place, role in enumerate(recorded.roles):
        made = recorded.made[:, 0, place]
        graded = made & ~recorded.ungraded[:, 0, place]
        right = recorded.correct[:, 0, place].astype(np.float64)
        if _apart(right[graded & among], right[graded & ~among]):
            here, there = right[graded & among].mean(), right[graded & ~among].mean()
            return (
                f"{role} is right {here:.2f} of the time on the questions that were asked of all, "
                f"{there:.2f} on the others: calls are not missing by chance, and what is said of "
                "the first is not true of the others"
            )
        cost = recorded.cost_nano[:, 0, place].astype(np.float64)
        if _apart(cost[made & among], cost[made & ~among]):
            return (
                f"{role} costs {cost[made & among].mean() / cost[made & ~among].mean():.2f} times "
                "as much on the questions that were asked of all as on the others: calls are not "
                "missing by chance, and what is said of the first is not true of the others"
            )
    return None


def _apart(one: FloatArray, other: FloatArray) -> bool:
    """Return whether two means differ by more than four standard errors of their difference."""
    if min(len(one), len(other)) < FEW:
        return False
    pooled = np.concatenate([one, other]).var()
    error = np.sqrt(pooled * (1 / len(one) + 1 / len(other)))
    return bool(abs(one.mean() - other.mean()) > SURELY * error)


def other_system(bundle: Bundle, system: System | None) -> tuple[str, ...]:
    """Say so where calibration traces were made with something else than the training ones."""
    if bundle.origin.system is None or system is None:
        return ()
    found = changes(bundle.origin.system, system)
    differ = "these traces were not made as those before, and the promise is about these"
    return (f"{differ}; changed: {', '.join(found)}",) if found else ()


def other_models(
    bundle: Bundle, models: tuple[str, ...], nameless: Collection[str] = ()
) -> tuple[str, ...]:
    """Say so where the traces' models are not those of the bundle; of unknown ones say nothing.

    Args:
        bundle: the bundle.
        models: those of the traces as it plays them, '' or its role where one is unknown.
        nameless: the roles whose models the traces do not name.
    """
    theirs, ours = (_in_turn(line) for line in (bundle.origin.models, models))
    in_line = len(theirs) > len(bundle.origin.models)
    roles = set(theirs).difference(bundle.origin.named) if in_line else set()
    same = all(
        one == other or one in {"", *roles} or other in {"", *nameless}
        for one, other in zip(theirs, ours, strict=False)
    )
    if len(theirs) == len(ours) and same:
        return ()
    before, now = (", ".join(filter(None, line)) for line in (bundle.origin.models, models))
    return (f"the bundle was trained on the models {before}; these traces have {now}",)


def _in_turn(models: tuple[str, ...]) -> list[str]:
    return [model for line in models for model in line.split(" -> ")]

"""Where a policy comes from: the traces that it was trained on, and so where it may be used."""

import msgspec
import numpy as np

from farthing.traces.arrays import NO_ANSWER, RIGHT, TraceArrays
from farthing.traces.pool import cascade, in_order, is_pool
from farthing.traces.system import System
from farthing.traces.trace_kind import CONTROLLER, PROTOCOL_ROLES


class Origin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a policy comes from, and so where it may be used."""

    roles: tuple[str, ...]
    """The roles of its traces; its actions are these and then `next`."""
    models: tuple[str, ...]
    """The models that filled the roles."""
    mean_cost_nano: tuple[int, ...]
    """Mean price of each role's call in its traces, in nano-dollars, rounded up."""
    horizon: int
    """Number of rounds."""
    fingerprint: str
    """SHA-256 of its training traces."""
    signals: tuple[str, ...] | None = None
    """The recorded numbers of its traces; None in bundles that do not say."""
    always: tuple[str, ...] = ()
    """Those of `confidence` and `uncertainty` that every answer of its traces came with."""
    independent: bool | None = None
    """Whether no call of its traces saw another one; None likewise."""
    largest_nano: dict[str, int] | None = None
    """Role to the most that one of its calls may cost, in nano-dollars, where that is declared."""
    system: System | None = None
    """What the traces were made with that calibrated it, or trained it before; None likewise."""
    reference: str | None = None
    """The role that was right most often alone in training, or that was named; None where none was
    recorded alone, or nobody says."""
    named: tuple[str, ...] = ()
    """The models that its traces name: of a pool that is asked in turn, its line holds the roles of
    the others."""

    grade: str = RIGHT
    """What an answer was judged by in training."""

    @property
    def is_pool(self) -> bool:
        """Whether its policy asks models side by side by their names, rather than in rounds."""
        return self.horizon == 1 and self.roles != PROTOCOL_ROLES and CONTROLLER not in self.roles

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions, in the order of the scores."""
        return (*self.roles, "next")


def as_asked(traces: TraceArrays, origin: Origin) -> TraceArrays:
    """Return traces as a policy of some origin asks for them live.

    It asks a pool by name, or one model after another in the order of their prices in training;
    that order stays, whatever the models cost in these traces. Models that it never asks are out.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> def pool(small: float) -> TraceArrays:
    ...     calls = [Call(round=1, role="small", cost_usd=small),
    ...              Call(round=1, role="large", cost_usd=0.1)]
    ...     return assemble([Trace(id="q", calls=calls)])
    >>> before = origin_of(cascade(pool(0.01)), "")
    >>> as_asked(pool(0.2), before).models, cascade(pool(0.2)).models
    (('small -> large',), ('large -> small',))
    """
    if not is_pool(traces):
        return traces
    named = [model or role for model, role in zip(traces.models, traces.roles, strict=True)]
    ours = list(traces.roles) if origin.is_pool else named
    theirs = origin.roles if origin.is_pool else origin.models[0].split(" -> ")
    known = set(theirs) <= set(ours) and len(set(ours)) == len(ours)
    places = [ours.index(name) for name in theirs] if known else None
    if not origin.is_pool:
        return cascade(traces, places)
    return traces if places is None else in_order(traces, places)


def roles_asked(traces: TraceArrays, origin: Origin) -> tuple[str, ...]:
    """Return the roles of a pool that a policy of some origin may ask; all, if it is another's."""
    if not is_pool(traces):
        return traces.roles
    named = [model or role for model, role in zip(traces.models, traces.roles, strict=True)]
    ours = list(traces.roles) if origin.is_pool else named
    theirs = origin.roles if origin.is_pool else origin.models[0].split(" -> ")
    found = tuple(role for role, name in zip(traces.roles, ours, strict=True) if name in theirs)
    return found if len(found) == len(theirs) else traces.roles


SURENESS = ("confidence", "uncertainty")
"""What a call says of its own answer: not every model that answers live says it."""


def _always(traces: TraceArrays, name: str) -> bool:
    answered = traces.answer != NO_ANSWER
    values = traces.signals.get(name)
    return values is not None and bool(answered.any()) and not np.isnan(values[answered]).any()


def origin_of(traces: TraceArrays, fingerprint: str, system: System | None = None) -> Origin:
    """Describe the traces that a policy was trained on, and what they were made with."""
    made = np.maximum((traces.cost_nano > 0).sum(axis=(0, 1)), 1)
    mean = -(-traces.cost_nano.sum(axis=(0, 1)) // made)
    return Origin(
        roles=traces.roles,
        models=traces.models,
        mean_cost_nano=tuple(mean.tolist()),
        horizon=traces.horizon,
        fingerprint=fingerprint,
        signals=tuple(traces.signals),
        always=tuple(name for name in SURENESS if _always(traces, name)),
        independent=bool(traces.independent.all()),
        system=system,
        grade=traces.grade,
    )

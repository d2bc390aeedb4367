"""Which recorded questions a candidate is played on: those that every model it may ask was asked.

A call that was not made is unknown: not wrong, not free, not instant. So a candidate that may ask
the models M, and is held against a reference, is played where all of M and the reference were
recorded. That is decided from who was asked and at what price, before any answer or grade is read,
and alike for all operating points of the candidate; a policy never learns that a call is missing.

The sets M are nested. The first pairs the reference with the model that shares most questions with
it; then models join one after another, the one that leaves most questions first. Where calls are
missing by chance each set has questions of its own; elsewhere all share those of the largest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from farthing.errors import InputError, TooFewTracesError, UnknownNameError
from farthing.promises.certificate import AskedOf
from farthing.traces.arrays import WHY_MISSING, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.pool import cheapest_first, in_order, is_pool
from farthing.traces.splits import sample_ids

Missing = Literal["chance", "unknown", "worst"]
"""What is taken of calls that were not made: that a lot decided it; nothing; or the worst."""
MISSING = get_args(Missing)
STAY = 0.5
"""The share of the remaining questions that must stay where a further model joins."""
SAME = 0.9
"""A model that leaves this share of a set's questions joins it, rather than beginning another."""
MOST_SETS = 3
"""Sets beyond which the ones between the first and the last are not worth their training."""


@dataclass(frozen=True)
class ModelSet:
    """Models that a candidate may ask, and the questions that all of them were asked."""

    roles: tuple[str, ...]
    """In the order of the traces."""
    rows: IntArray
    """In ascending order."""


@dataclass(frozen=True)
class Eligibility:
    """Who may be asked on which questions."""

    traces: TraceArrays
    """The questions that the rows of the sets are of."""
    sets: tuple[ModelSet, ...]
    """Nested: each has more models than the one before it, on fewer of its questions."""
    left_out: dict[str, int]
    """The models that no set has, and how many questions each would have left."""
    recorded: int
    """All questions of the traces."""
    missing: Missing | None
    """What is taken of the calls that are missing; None: none is."""

    def of(self, models: ModelSet) -> TraceArrays:
        """Return the questions with the models of a set alone; those outside it are incomplete."""
        return only(self.traces, models.roles)

    def asked_of(self, models: ModelSet, reference: str | None) -> AskedOf | None:
        """Say which of the recorded questions a proof on a set is about; None: all of them."""
        if not is_pool(self.traces) or (self.missing is None and len(models.rows) == self.recorded):
            return None
        names = (reference or "",) if self.missing == "worst" else models.roles
        weights = draw_weights(self.of(models).take(models.rows))
        return AskedOf(
            models=names,
            questions=len(models.rows),
            recorded=self.recorded,
            missing=self.missing,
            weighted=weights is not None,
        )

    def notes(self) -> tuple[str, ...]:
        """Say who is left out, and what is taken of the calls that are missing."""
        named = ", ".join(f"{role} (asked {n:,} of these)" for role, n in self.left_out.items())
        notes = [f"left out, as too few questions would stay: {named}"] if named else []
        if self.missing == "worst":
            notes.append(
                "questions that lack calls train nothing; a model alone counts as wrong, at its "
                "highest price, where it was not asked"
            )
        if self.missing == "unknown":
            more = "; where a lot decided, `--missing chance` uses more of them"
            notes.append(
                "some questions lack calls and nobody says why, so all figures are of those that "
                f"every model was asked{more if len(self.sets[-1].roles) > 2 else ''}"
            )
        return tuple(notes)


def eligible(
    traces: TraceArrays,
    reference: str | None = None,
    missing: Missing | None = None,
    *,
    proving: bool = True,
) -> Eligibility:
    """Decide who may be asked on which questions, from who was asked and at what price alone.

    Args:
        traces: the questions; of those that are no pool, all that were recorded in full.
        reference: the model that every candidate is held against; None: the one that was asked most
            often begins the first set.
        missing: what to take of calls that were not made; None: what the traces say.
        proving: whether anything is to be proved on them; who only trains may be unlike others.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> def asked(name: str, *models: str) -> Trace:
    ...     return Trace(id=name, calls=[Call(round=1, role=m, cost_usd=1e-6) for m in models])
    >>> traces = assemble([asked("1", "small", "large"), asked("2", "small", "large", "mini"),
    ...                    asked("3", "large", "mini"), asked("4", "small", "large")])
    >>> found = eligible(traces, "large", "chance")
    >>> [(one.roles, one.rows.tolist()) for one in found.sets], found.left_out
    ([(('large', 'small'), [0, 1, 3])], {'mini': 1})
    """
    if reference is not None and reference not in traces.roles:
        raise UnknownNameError("role", reference, traces.roles)
    whole = traces.recorded == traces.horizon
    made = traces.made[:, 0] & whole[:, None]
    if not is_pool(traces) or traces.n_roles == 1 or not (~traces.made[whole]).any():
        rows = np.flatnonzero(traces.complete)
        return Eligibility(traces, (ModelSet(traces.roles, rows),), {}, len(traces), None)
    if missing == "worst":
        return _at_worst(traces, made, reference)
    why = _why(traces, whole, missing) if proving else "unknown"
    chain, left_out = _joined(made, traces, reference)
    sets = _sets(chain, made, traces.roles)
    return Eligibility(traces, sets if why == "chance" else sets[-1:], left_out, len(traces), why)


def asked_all(
    traces: TraceArrays, roles: Sequence[str], missing: Missing | None = None
) -> tuple[TraceArrays, AskedOf | None]:
    """Return the questions that all of some models were asked, with these models alone.

    What other models said, and whether they were asked at all, changes nothing of it.

    Args:
        traces: the questions; what is no pool is returned as it is.
        roles: the models; where the worst is taken, the last is the one that must have answered.
        missing: see `eligible`.

    Returns:
        The questions, and which of the recorded ones they are; None: all of them.
    """
    if not is_pool(traces):
        return traces, None
    some = only(traces, roles)
    whole = some.recorded == some.horizon
    holes = bool((~some.made[whole]).any())
    if holes and missing == "worst":
        found = _at_worst(some, some.made[:, 0] & whole[:, None], roles[-1])
        return found.traces, found.asked_of(found.sets[0], roles[-1])
    why = _why(some, whole, missing) if holes else None
    rows = np.flatnonzero(some.complete)
    if holes and not rows.size:
        raise TooFewTracesError(f"no question was asked of all of {', '.join(some.roles)}")
    found = Eligibility(some, (ModelSet(some.roles, rows),), {}, len(traces), why)
    return (some.take(rows) if holes else some), found.asked_of(found.sets[0], None)


def common(
    traces: TraceArrays,
    reference: str | None = None,
    missing: Missing | None = None,
    *,
    proving: bool = True,
) -> tuple[TraceArrays, AskedOf | None]:
    """Return the questions of the largest set of models, with these alone; see `eligible`."""
    found = eligible(traces, reference, missing, proving=proving)
    largest = found.sets[-1]
    some = found.of(largest)
    taken = some if found.missing in {None, "worst"} else some.take(largest.rows)
    return taken, found.asked_of(largest, reference)


def draw_weights(pool: TraceArrays) -> FloatArray | None:
    """Return what each question counts, [n] in (0, 1]; None where all count alike.

    That is min p / p, where a lot of probability p decided whether these models were asked. Calls
    of one question with the same probability are taken for one lot's, others for independent
    lots'. What no lot decided was asked for certain.

    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> def asked(name: str, p: float | None) -> Trace:
    ...     calls = [Call(round=1, role="large"), Call(round=1, role="mini", asked_probability=p)]
    ...     return Trace(id=name, calls=calls)
    >>> draw_weights(assemble([asked("1", 0.5), asked("2", 0.25)]))
    array([0.5, 1. ])
    >>> draw_weights(assemble([asked("1", 0.5), asked("2", 0.5)]))
    """
    chances = pool.asked_probability[:, 0].astype(np.float64)
    if not is_pool(pool) or np.isnan(chances).all():
        return None
    lots = np.sort(np.where(np.isnan(chances), 1.0, chances), axis=1)
    another = np.append(np.ones((len(lots), 1), bool), lots[:, 1:] != lots[:, :-1], axis=1)
    probability = np.where(another, lots, 1.0).prod(axis=1)
    weights: FloatArray = probability.min() / probability
    return None if (weights == 1.0).all() else weights


def alike(pool: TraceArrays, rows: IntArray) -> IntArray:
    """Return questions as if all had been drawn with the same probability: some are left out.

    Each stays with the chance that it counts for (`draw_weights`), so that plain figures of those
    that stay are of all. The lots depend on the questions' ids alone.
    """
    weights = draw_weights(pool.take(rows))
    if weights is None:
        return rows
    return rows[sample_ids(pool.ids[rows], 0, weights)]


def check_alike(pool: TraceArrays) -> None:
    """Refuse questions drawn with different probabilities, where nothing can weigh them."""
    if draw_weights(pool) is not None:
        raise InputError(
            "these questions were drawn with different probabilities (`asked_probability`), which "
            "only a proof of parity or agreement can weigh; ask for one of these, or take "
            "questions that were drawn alike"
        )


def only(traces: TraceArrays, roles: Sequence[str]) -> TraceArrays:
    """Return a pool with these models alone, in the order of its own."""
    for role in roles:
        if role not in traces.roles:
            raise UnknownNameError("role", role, traces.roles)
    wanted = [place for place, role in enumerate(traces.roles) if role in set(roles)]
    return traces if len(wanted) == traces.n_roles else in_order(traces, wanted)


def _why(traces: TraceArrays, whole: BoolArray, missing: Missing | None) -> Missing:
    """Return what is said of the missing calls, or else what the traces say.

    A lot is said to have decided where each question that lacks calls says so, or where each call
    of a model that some questions lack was made with a known probability.
    """
    lacking = ~traces.made[:, 0].all(axis=1) & whole
    reason = traces.missing_because[lacking]
    cascaded = int((reason == WHY_MISSING.index("earlier_reply")).sum())
    if cascaded:
        raise InputError(
            f"{cascaded:,} of {len(traces):,} questions lack calls since an earlier reply made "
            "them needless, so the others are no fair sample: give --missing worst, which counts "
            "what is unknown as lost, or traces whose calls a lot decided"
        )
    if missing is not None:
        return missing
    some = ~traces.made[whole].all(axis=(0, 1))
    by_chance = ~np.isnan(traces.asked_probability[:, 0]) | ~traces.made[:, 0]
    by_lot = bool(by_chance[whole][:, some].all())
    return "chance" if by_lot or (reason == WHY_MISSING.index("chance")).all() else "unknown"


def _at_worst(traces: TraceArrays, made: BoolArray, reference: str | None) -> Eligibility:
    if reference is None:
        raise InputError("the worst case needs a model to be held against: name the reference")
    rows = np.flatnonzero(made[:, traces.roles.index(reference)])
    if not made[rows].all(axis=1).any():
        raise _nothing_in_common(len(rows), reference)
    some = replace(traces.take(rows), at_worst=True)
    everyone = ModelSet(traces.roles, np.arange(len(rows)))
    return Eligibility(some, (everyone,), {}, len(traces), "worst")


def _joined(
    made: BoolArray, traces: TraceArrays, reference: str | None
) -> tuple[list[int], dict[str, int]]:
    """Return the places of the models in the order in which they join, and who is left out."""
    by_price = {place: rank for rank, place in enumerate(cheapest_first([traces]))}
    asked = made.sum(axis=0)
    first = int(asked.argmax()) if reference is None else traces.roles.index(reference)
    chain, rows = [first], made[:, first]
    waiting = [place for place in range(traces.n_roles) if place != first]
    while waiting:
        best = max(waiting, key=lambda place: ((rows & made[:, place]).sum(), -by_price[place]))
        stay = int((rows & made[:, best]).sum())
        if not stay or (len(chain) > 1 and stay < STAY * rows.sum()):
            break
        chain.append(best)
        waiting.remove(best)
        rows = rows & made[:, best]
    if len(chain) == 1:
        raise _nothing_in_common(int(asked[first]), traces.roles[first])
    left = {traces.roles[place]: int((rows & made[:, place]).sum()) for place in waiting}
    return chain, left


def _nothing_in_common(n: int, role: str) -> TooFewTracesError:
    return TooFewTracesError(
        f"none of the {n:,} questions that {role} answered was asked of the others, so nothing can "
        "be compared; ask other models some of the same questions (`farthing collect`), or join "
        "logs whose question ids are the same"
    )


def _sets(chain: list[int], made: BoolArray, roles: tuple[str, ...]) -> tuple[ModelSet, ...]:
    """Return the nested sets of a chain, a new one where a model costs a tenth of the questions."""
    sizes: list[int] = []
    rows = made[:, chain[0]] & made[:, chain[1]]
    begun = rows.sum()
    for place in range(2, len(chain)):
        rows = rows & made[:, chain[place]]
        if rows.sum() < SAME * begun:
            sizes.append(place)
            begun = rows.sum()
    sizes.append(len(chain))
    if len(sizes) > MOST_SETS:
        sizes = [sizes[0], sizes[len(sizes) // 2], sizes[-1]]
    return tuple(
        ModelSet(
            tuple(roles[i] for i in sorted(chain[:size])),
            np.flatnonzero(made[:, chain[:size]].all(axis=1)),
        )
        for size in sizes
    )

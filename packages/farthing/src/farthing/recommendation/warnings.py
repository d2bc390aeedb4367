"""What speaks against trusting a bundle on some questions."""

from collections.abc import Collection

import numpy as np

from farthing.bundle.base import Bundle
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.eligibility import draw_weights
from farthing.traces.fingerprint import fingerprint
from farthing.traces.splits import Parts
from farthing.traces.system import System, changes

FEW, SURELY = 30, 4.0
"""Questions from which means are compared as well; standard errors that chance seldom has."""
ACCIDENT = 0.005
"""How often exact tests warn of calls that chance left out: of grades, of costs as often."""
APART, MOSTLY, MANY = 0.2, 80, 400
"""The difference to notice, in how many of 100 cases; questions from which it surely is."""
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
    among = np.isin(np.arange(len(recorded)), rows)
    level = ACCIDENT / recorded.n_roles
    for place, role in enumerate(recorded.roles):
        made = recorded.made[:, 0, place]
        graded = made & ~recorded.ungraded[:, 0, place]
        right = recorded.correct[:, 0, place].astype(np.float64)
        if _apart(right[graded & among], right[graded & ~among], level):
            here, there = right[graded & among].mean(), right[graded & ~among].mean()
            return (
                f"calls are not missing by chance: {role} is right {here:.2f} of the time on the "
                f"questions that were asked of all, {there:.2f} on the others; what is said of the "
                "first is not true of the others"
            )
        cost = recorded.cost_nano[:, 0, place].astype(np.float64)
        if _apart(cost[made & among], cost[made & ~among], level):
            return (
                f"calls are not missing by chance: {role} costs "
                f"{cost[made & among].mean() / cost[made & ~among].mean():.2f} times as much on "
                "the questions that were asked of all as on the others; what is said of the first "
                "is not true of the others"
            )
    return None


def by_what_was_recorded(recorded: TraceArrays, rows: IntArray) -> list[str]:
    """Say what speaks against somebody's word that chance left calls out, or that little could."""
    if len(rows) == len(recorded) or draw_weights(recorded) is not None:
        return []
    return [*filter(None, [unlike(recorded, rows) or _power(recorded, rows)])]


def _apart(one: FloatArray, other: FloatArray, level: float) -> bool:
    """Return whether chance seldom parts two means as far: by an exact test at any number.

    From 30 questions of each, four standard errors of their difference say so as well.
    """
    pooled = np.concatenate([one, other])
    few = min(len(one), len(other))
    error = pooled.std() * np.sqrt(1 / len(one) + 1 / len(other)) if few else 0.0
    if few >= FEW and abs(one.mean() - other.mean()) > SURELY * error:
        return True
    return few > 0 and _p_value(one > pooled.mean(), other > pooled.mean()) < level


def _p_value(one: BoolArray, other: BoolArray) -> float:
    """Return the p-value of Fisher's exact test of two shares."""
    from scipy.stats import fisher_exact  # noqa: PLC0415 - only where calls are missing

    table = np.array([[part.sum(), (~part).sum()] for part in (one, other)])
    return float(fisher_exact(table).pvalue)


def _power(recorded: TraceArrays, rows: IntArray) -> str | None:
    """Say so where `unlike` would seldom notice a model that is right less often on the others."""
    among = np.isin(np.arange(len(recorded)), rows)
    graded = recorded.made[:, 0] & ~recorded.ungraded[:, 0]
    others = graded[~among].sum(axis=0)
    place, n = int(others.argmax()), int(others.max())
    here = recorded.correct[among & graded[:, place], 0, place]
    if not n or not len(here):
        return "no graded answer to the questions that lack calls could speak against chance"
    rng, share = np.random.default_rng(0), float(here.mean())
    worse = share - APART if share >= APART else share + APART
    noticed = sum(
        _p_value(rng.random(len(here)) < share, rng.random(n) < worse) < ACCIDENT / len(others)
        for _ in range(100 if n < MANY else 0)
    )
    if n >= MANY or noticed >= MOSTLY:
        return None
    return (
        f"{n:,} questions that lack calls have a graded answer of {recorded.roles[place]}: if that "
        f"were right {APART:g} less or more often than on the others, and calls not missing by "
        f"chance, it would be noticed in {noticed} of 100 cases"
    )


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

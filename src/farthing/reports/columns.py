"""The columns of a comparison's table: what each metric is called, and how its mean is written."""

from farthing.money import significant
from farthing.process.value import signed
from farthing.recommendation.base import (
    ANSWERED,
    FELL_BACK,
    KEPT,
    REALISED,
    SAVED,
    TIMES_OPTIMUM,
    Comparison,
)
from farthing.recommendation.promises import Agreement, Parity, Promise, Selective
from farthing.reports.base import PER_THOUSAND, Column, knows_optimum

KEY = (
    "Acc.: best answer right; Solv.: coverage if solvable; Len: rounds; Set: answers; "
    "Leaf: with repetitions"
)
ACCURACY_KEY = "Acc.: best answer right"
PROMISE_KEY = "Kept, Back: splits in which it was kept, and in which nothing was proved"
SAVED_KEY = "cost below that of always"
OPTIMUM_KEY = "×opt: cost over the optimum's at the same coverage, on fresh questions"


def _cents(usd: float) -> str:
    return significant(usd * 100, 4)


def per_thousand(usd: float) -> str:
    """Write a cost a question as dollars per thousand questions."""
    return significant(usd * PER_THOUSAND)


def share(value: float) -> str:
    """Write a share."""
    return f"{value:.3f}"


def count(value: float) -> str:
    """Write a mean of whole numbers."""
    return f"{value:.2f}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


COST = Column("cost_usd", "USD a question", "USD/q", significant, "dollars")
ACCURACY = Column(
    "accuracy", "Accuracy", "Acc.", share, "share of questions whose single best answer is right"
)
BESIDE_OPTIMUM = Column(
    TIMES_OPTIMUM,
    "Cost, × optimum",
    "×opt",
    count,
    "cost over what the known optimum pays for the very coverage that the policy reaches, both on "
    "20,000 fresh questions of the generator; known to about 0.01",
)


def _saved(share: float) -> str:
    return f"{100 * share:.1f} %".replace("-0.0 %", "0.0 %")


def columns(comparison: Comparison) -> tuple[Column, ...]:
    """Return the columns of a comparison's table: money first."""
    if comparison.promise is not None:
        return _of_promise(comparison, comparison.promise)
    test, optimum = comparison.sizes["test"], knows_optimum(comparison)
    return (
        Column(
            "total_cost_usd",
            f"Cost (cents), {test} questions",
            f"¢/{test}",
            _cents,
            f"cents for the {test} test questions together, as the paper counts",
        ),
        COST,
        *_saved_on(comparison.reference),
        ACCURACY,
        Column(
            "coverage",
            "Coverage",
            "Coverage",
            share,
            "share of questions with a right answer in the set, or with none ever recorded",
        ),
        *([BESIDE_OPTIMUM] if optimum else []),
        Column(
            "coverage_solvable", "Given solvable", "Solv.", share, "coverage of solvable questions"
        ),
        Column("avg_len", "Avg. Len.", "Len", count, "deepest round that was run"),
        Column("set_size", "Set Size (distinct)", "Set", count, "different answers returned"),
        Column(
            "set_size_leaves",
            "Set Size (leaves)",
            "Leaf",
            count,
            "answers returned with repetitions, as the paper counts",
        ),
        Column("empty", "Empty", "Empty", share, "share of questions without any answer"),
    )


def key(comparison: Comparison) -> str:
    """Say what the short headings mean."""
    reference = comparison.reference
    saved = [f"Saved: {SAVED_KEY} {reference}"] if reference else []
    if comparison.promise is not None:
        short = [f"{one.short}: {one.meaning}" for one in _figures(comparison.promise)]
        return "; ".join([*saved, ACCURACY_KEY, *short, PROMISE_KEY])
    known = [OPTIMUM_KEY] if knows_optimum(comparison) else []
    return "; ".join([*saved, *known, KEY])


def _saved_on(reference: str) -> list[Column]:
    """Return the column of what is saved against a single model; none where there is none."""
    if not reference:
        return []
    meaning = f"1 - cost over that of asking {reference} alone on the same questions"
    return [Column(SAVED, f"Saved, against always {reference}", "Saved", _saved, meaning)]


def _of_promise(comparison: Comparison, promise: Promise) -> tuple[Column, ...]:
    """Return the columns where another promise than coverage is proved."""
    return (
        COST,
        *_saved_on(comparison.reference),
        ACCURACY,
        *_figures(promise),
        Column(KEPT, "Kept", "Kept", _percent, "share of the splits in which it was as promised"),
        Column(
            FELL_BACK,
            "Fell back",
            "Back",
            _percent,
            "share of the splits in which nothing was proved, so that the reference answered and "
            "was paid or, where there is none, nobody was asked",
        ),
    )


def _figures(promise: Promise) -> list[Column]:
    """Return the columns of the figure that is promised; a budget's is the cost itself."""
    match promise:
        case Parity():
            name = f"Accuracy less {promise.reference}'s"
            return [Column(REALISED, name, "Gap", signed, name[0].lower() + name[1:])]
        case Agreement():
            meaning = f"share of answers that are {promise.reference}'s"
            return [Column(REALISED, f"Agreement with {promise.reference}", "Same", share, meaning)]
        case Selective():
            right = Column(
                REALISED, "Right of those given", "Right", share, "share of given answers right"
            )
            return [right, Column(ANSWERED, "Answered", "Given", share, "share answered at all")]
    return []

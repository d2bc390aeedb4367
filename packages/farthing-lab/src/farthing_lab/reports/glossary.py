"""The words of a comparison: its columns, and its policies for whoever meets their names first."""

from farthing.methods.cards import cards
from farthing.money import significant
from farthing.promises.base import Promise
from farthing.promises.texts import Column, hundredths, share
from farthing.recommendation.base import FELL_BACK, TIMES_OPTIMUM, Comparison
from farthing.reports.base import PER_THOUSAND
from farthing_lab.comparison.names import (
    AIQ,
    ARENA_SCORE,
    GAIN_AT_EQUAL_COST,
    KEPT,
    SAVED,
    SAVING_AT_EQUAL_ACCURACY,
)
from farthing_lab.comparison.rows import knows_optimum

KEY = (
    "Acc.: best answer right; Solv.: coverage if solvable; Len: rounds; Set: answers; "
    "Leaf: with repetitions"
)
ACCURACY_KEY = "Acc.: best answer right"
PROMISE_KEY = "Kept, Back: splits in which it was kept, and in which nothing was proved"
SAVED_KEY = "cost below that of always"
OPTIMUM_KEY = "×opt: cost over the optimum's at the same coverage, on fresh questions"


def per_thousand(usd: float) -> str:
    """Write a cost a question as dollars per thousand questions."""
    return significant(usd * PER_THOUSAND)


def count(value: float) -> str:
    """Write a mean of whole numbers."""
    return f"{value:.2f}"


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


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f}".replace("-0.0", "+0.0")


ROUTER_COLUMNS = (
    Column(
        GAIN_AT_EQUAL_COST,
        "Gain at equal cost, points",
        "Gain",
        _points,
        "accuracy of the best operating point that costs no more than the most accurate single "
        "model, less that model's (after LLMRouterBench's PerfGain); chosen after the answers are "
        "known, on all questions outside training, as are the next two",
    ),
    Column(
        SAVING_AT_EQUAL_ACCURACY,
        "Saving at equal accuracy",
        "Saving",
        _saved,
        "1 - cost of the cheapest operating point that is as accurate as that model, over its cost "
        "(LLMRouterBench's CostSave)",
    ),
    Column(
        AIQ,
        "AIQ",
        "AIQ",
        share,
        "mean accuracy of the convex hull of cost and accuracy, between what the cheapest and the "
        "most expensive single model cost (RouterBench)",
    ),
    Column(
        ARENA_SCORE,
        "Arena score",
        "Arena",
        share,
        "RouterArena's weighted mean of accuracy and the logarithm of cost, of the figures above",
    ),
)
"""What benchmarks of routers print."""


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
            lambda usd: significant(usd * 100, 4),
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
        short = [f"{one.short}: {one.meaning}" for one in comparison.promise.columns()]
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
        *promise.columns(),
        Column(KEPT, "Kept", "Kept", hundredths, "share of the splits in which it was as promised"),
        Column(
            FELL_BACK,
            "Not proved",
            "Back",
            hundredths,
            "share of the splits in which nothing was proved, so that the reference answered and "
            "was paid or, where there is none, nobody was asked",
        ),
    )


CPO = (
    "constrained policy optimisation (Achiam et al. 2017): a network trained for least cost at the "
    "coverage asked for. As it is, it draws its actions; “batch” sets a threshold on the "
    "calibration part, “online” keeps one tracked over the training questions"
)
CCPO = (
    "conformal CPO (arXiv 2511.11828): the network is trained together with its threshold, which "
    "is then set anew on the calibration part"
)
LAMBDA = (
    "the price of each answer in the returned set: “0.86 rounds” is 0.86 times the mean cost of a "
    "round, and the paper's own is in USD; at λ=0 only calls cost something"
)
POLICIES = {
    "random": ("Random", "draws each action by lot"),
    "llm-policy": ("LLM policy", "a model is shown both answers and names the action"),
    "exit": ("LLM-EXIT", "one model answers alone and says itself when to stop (Lu et al. 2025)"),
    "fixed": ("Fixed depth", "always runs so many rounds and returns every answer"),
    "uala": (
        "UALA",
        "returns the guide's answers; goes on while it doubts (Han et al. 2024)",
    ),
    "cpo": ("CPO", CPO),
    "ccpo": ("CCPO", CCPO),
    "stopping": ("Supervised stopping", "a regression says what the rounds to come would gain"),
    "lookahead": (
        "Look-ahead",
        "weighs what a round and the next would gain for their money",
    ),
    "lazy": ("Lazy", "the same for single calls, in whatever order"),
    "sequence": ("Sequence", "the same for several calls at a time, which are waited for once"),
    "selective": ("Selective", "buys until one answer is sure enough; may give none"),
    "optimum": ("Optimum (known)", "knows the generator's probabilities, as no real policy can"),
}
"""By the beginning of their names: what tables call them, and what they do."""


def explained(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the name and the meaning of every kind of policy that takes part, and of lambda."""
    found = dict(entry for row in comparison.rows for entry in _meaning(row.policy))
    if any("λ" in row.label for row in comparison.rows):
        found["λ"] = LAMBDA
    return list(found.items())


def _meaning(policy: str) -> list[tuple[str, str]]:
    """Return what a policy's kind is, or else what the card of its method says, if it has one."""
    for kind, entry in POLICIES.items():
        if f"{policy}-".startswith(f"{kind}-"):
            return [entry]
    methods = [card for card in cards() if f"{policy}-".startswith(f"{card.name}-")]
    closest = sorted(methods, key=lambda card: len(card.name))[-1:]
    return [(card.label, card.meaning[0].lower() + card.meaning[1:]) for card in closest]

"""Look-ahead: buy what gains most for its money; in rounds, or call by call."""

from collections.abc import Sequence

from farthing.methods.base import Dataset, Method, Variant, load

LOOKAHEAD = Method(
    name="lookahead",
    label="Look-ahead",
    meaning="Goes on while the rounds to come gain most for their money",
    policy="farthing.methods.lookahead.policy:LookaheadPolicy",
    learner="farthing.methods.lookahead.learner:LOOKAHEAD",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    tried_for=frozenset({"one", "set"}),
    place=70,
)


def _where_independent(dataset: Dataset) -> Sequence[Variant]:
    """Return the learner of single calls; none where calls saw each other."""
    if not dataset.traces.independent.all():
        note = "calls saw earlier ones, so none can be skipped"
        return [Variant(LAZY.name, "Lazy", None, note)]
    return [Variant(LAZY.name, LAZY.label, load(LAZY.learner))]


LAZY = Method(
    name="lazy",
    label="Lazy (call by call)",
    meaning="Buys one call at a time: the one that gains most for its money, in any order",
    policy="farthing.methods.lookahead.policy:LookaheadPolicy",
    learner="farthing.methods.lookahead.learner:LAZY_LEARNER",
    action_spaces=("calls",),
    needs=("independent calls",),
    extras=("train",),
    variants=_where_independent,
    tried_for=frozenset({"one", "set"}),
    place=72,
)
LAZY_SINGLE = Method(
    name="lazy-single",
    label="Lazy, one answer",
    meaning="Buys as lazy does, and answers with the one that the replies make likeliest",
    policy="farthing.methods.lookahead.pool_policy:LazySinglePolicy",
    learner="farthing.methods.lookahead.pool_learner:LAZY_SINGLE",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    place=79,
)

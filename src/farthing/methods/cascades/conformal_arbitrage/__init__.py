"""Conformal arbitrage: a primary model, and a guardian where it is not clear."""

from farthing.methods.base import Method

CONFORMAL_ARBITRAGE = Method(
    name="conformal-arbitrage",
    label="Conformal arbitrage",
    meaning="A cheap model answers where its best answer is far ahead, a guardian answers the rest",
    paper="2506.00911",
    policy="farthing.methods.cascades.conformal_arbitrage.policy:ArbitragePolicy",
    learner="farthing.methods.cascades.conformal_arbitrage.learner:CONFORMAL_ARBITRAGE",
    action_spaces=("pool",),
    needs=("pool", "confidences"),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=86,
)

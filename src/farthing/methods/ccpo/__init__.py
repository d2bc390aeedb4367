"""Conformal constrained policy optimisation: a network and its threshold, learned together."""

from farthing.methods.base import Method

PAPER = "2511.11828"
POLICY = "farthing.methods.cpo.policy:NetworkPolicy"

CCPO = Method(
    name="ccpo",
    label="CCPO (λ=0)",
    meaning="A network and its threshold learned together, with the exact constraint and cost",
    paper=PAPER,
    policy=POLICY,
    learner="farthing.methods.ccpo.learner:CCPO",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    place=50,
)
CCPO_LAMBDA = Method(
    name="ccpo-lambda",
    label="CCPO (λ=0.86 rounds)",
    meaning="The same with a price on each answer in the set",
    paper=PAPER,
    policy=POLICY,
    learner="farthing.methods.ccpo.learner:CCPO_LAMBDA",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    place=51,
)
CCPO_PUBLISHED = Method(
    name="ccpo-published",
    label="CCPO as published",
    meaning="The paper's own: leaf count for the constraint, sampled cost, sets that may be empty",
    paper=PAPER,
    policy=POLICY,
    learner="farthing.methods.ccpo.learner:CCPO_PUBLISHED",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    empty="allow",
    place=52,
)

"""Bayesian orchestration: opinions until one more is worth less than it costs."""

from farthing.methods.base import Method

OPINIONS = Method(
    name="bayesian-orchestration",
    label="Bayesian orchestration",
    meaning="Weighs opinions by Bayes; buys one more while it saves more than it costs",
    paper="2601.01522",
    policy="farthing.methods.bayesian_judges.policy:OpinionsPolicy",
    learner="farthing.methods.bayesian_judges.learner:OPINIONS",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset(),
    place=92,
)

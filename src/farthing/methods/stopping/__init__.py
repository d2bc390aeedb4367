"""Supervised stopping: go on while what later rounds would gain is worth their price."""

from farthing.methods.base import Method

STOPPING = Method(
    name="stopping",
    label="Supervised stopping",
    meaning="A logistic model of what later rounds would gain, thresholded",
    policy="farthing.methods.stopping.policy:StoppingPolicy",
    learner="farthing.methods.stopping.learner:STOPPING",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one", "set"}),
    place=60,
)

"""V_0: a router by estimated success, which a model can join with a handful of outcomes."""

from farthing.methods.base import Method

V0 = Method(
    name="v0",
    label="V_0 (routing)",
    meaning="One model is asked, by estimated success and cost; a few outcomes of each are enough",
    paper="2602.03584",
    policy="farthing.methods.routers.v0.policy:V0Policy",
    learner="farthing.methods.routers.v0.learner:V0",
    action_spaces=("pool",),
    needs=("pool", "text"),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    place=91,
)

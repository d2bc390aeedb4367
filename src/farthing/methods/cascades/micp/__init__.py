"""MiCP: an error budget for each turn."""

from farthing.methods.base import Method

MICP = Method(
    name="micp",
    label="MiCP",
    meaning="Each model in turn may be wrong on its own share of the questions",
    paper="2604.01413",
    policy="farthing.methods.cascades.turns:TurnsPolicy",
    learner="farthing.methods.cascades.micp.learner:MICP",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=85,
)

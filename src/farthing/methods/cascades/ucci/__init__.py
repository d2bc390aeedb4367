"""UCCI: two models in a row, the first one's confidence calibrated."""

from farthing.methods.base import Method

UCCI = Method(
    name="ucci",
    label="UCCI",
    meaning="The small model's confidence, calibrated, decides whether to ask the large one",
    paper="",
    policy="farthing.methods.cascades.ucci.policy:UcciPolicy",
    learner="farthing.methods.cascades.ucci.learner:UCCI",
    action_spaces=("pool",),
    needs=("pool", "confidences"),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=84,
)

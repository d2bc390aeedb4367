"""Trust or Escalate: each model is trusted where its error is proved small."""

from farthing.methods.base import Method

TRUST_OR_ESCALATE = Method(
    name="trust-or-escalate",
    label="Trust or Escalate",
    meaning="Each model is trusted where its error is proved small; else the next is asked",
    paper="2407.18370",
    policy="farthing.methods.cascades.turns:TurnsPolicy",
    learner="farthing.methods.cascades.trust_or_escalate.learner:TRUST_OR_ESCALATE",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=87,
)

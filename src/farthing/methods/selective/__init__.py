"""One answer and how sure it is, for promises about the answers that are given."""

from farthing.methods.base import Method

SELECTIVE = Method(
    name="selective",
    label="Selective look-ahead",
    meaning="Buys until one answer is sure enough, and says how sure it is; may give none",
    policy="farthing.methods.selective.policy:SelectivePolicy",
    learner="farthing.methods.selective.learner:SELECTIVE",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    empty="allow",
    place=75,
)

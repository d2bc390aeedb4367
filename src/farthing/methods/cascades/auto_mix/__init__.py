"""AutoMix: a POMDP over what a verifier says of each reply."""

from farthing.methods.base import Method

AUTO_MIX = Method(
    name="auto-mix",
    label="AutoMix",
    meaning="A verifier doubts each reply, and a POMDP decides whether to go up a size",
    paper="2310.12963",
    policy="farthing.methods.cascades.auto_mix.policy:AutoMixPolicy",
    learner="farthing.methods.cascades.auto_mix.learner:AUTO_MIX",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=83,
)

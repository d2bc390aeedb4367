"""Look-ahead with a price on each answer in the set."""

from farthing.methods.base import Method

LOOKAHEAD_LAMBDA = Method(
    name="lookahead-lambda",
    label="Look-ahead (λ=0.86 rounds)",
    meaning="Look-ahead that returns an answer only where it is likely enough to be right",
    policy="farthing.methods.set_size_penalty.policy:SetSizePenaltyPolicy",
    learner="farthing.methods.set_size_penalty.learner:LOOKAHEAD_LAMBDA",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    place=71,
)

"""FrugalGPT: a list of models, each believed from a threshold on."""

from farthing.methods.base import Method

FRUGAL_GPT = Method(
    name="frugal-gpt",
    label="FrugalGPT",
    meaning="A learned list of up to three models, each believed where its score is high enough",
    paper="2305.05176",
    policy="farthing.methods.cascades.frugal_gpt.policy:FrugalGptPolicy",
    learner="farthing.methods.cascades.frugal_gpt.learner:FRUGAL_GPT",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=82,
)

"""RouteLLM: one of two models, by the text of the question alone."""

from farthing.methods.base import Method

ROUTE_LLM = Method(
    name="route-llm",
    label="RouteLLM (similarity)",
    meaning="One of two models is asked, by which of them won the training questions most like it",
    paper="2406.18665",
    policy="farthing.methods.routers.route_llm.policy:RouteLlmPolicy",
    learner="farthing.methods.routers.route_llm.learner:ROUTE_LLM",
    action_spaces=("pool",),
    needs=("pool", "text"),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=89,
)
ROUTE_LLM_FACTORISATION = Method(
    name="route-llm-factorisation",
    label="RouteLLM (factorisation)",
    meaning="One of two models is asked, by a linear score of the question's text",
    paper="2406.18665",
    policy="farthing.methods.routers.route_llm.policy:RouteLlmPolicy",
    learner="farthing.methods.routers.route_llm.learner:ROUTE_LLM_FACTORISATION",
    action_spaces=("pool",),
    needs=("pool", "text"),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    place=90,
)

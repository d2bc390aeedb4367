"""Cascade routing: after each reply, choose again among all sets of models."""

from farthing.methods.base import Method

CASCADE_ROUTING = Method(
    name="cascade-routing",
    label="Cascade routing",
    meaning="After each reply chooses again among all sets of models that hold those asked",
    paper="2410.10347",
    policy="farthing.methods.routers.cascade_routing.policy:CascadeRoutingPolicy",
    learner="farthing.methods.routers.cascade_routing.learner:CASCADE_ROUTING",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    place=88,
)

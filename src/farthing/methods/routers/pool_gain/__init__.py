"""Pool gain: parity with a strong model, by a row of models before it."""

from farthing.methods.base import Method

POOL_GAIN = Method(
    name="pool-gain",
    label="Pool gain",
    meaning="A row of models before a strong one; goes on while an answer may be lost against it",
    paper="",
    policy="farthing.methods.routers.pool_gain.policy:PoolGainPolicy",
    learner="farthing.methods.routers.pool_gain.learner:POOL_GAIN",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"one"}),
    place=80,
)

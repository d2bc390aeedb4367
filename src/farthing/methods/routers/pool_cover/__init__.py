"""Pool cover: coverage by a row of models, those that solve most for their money first."""

from farthing.methods.base import Method

POOL_COVER = Method(
    name="pool-cover",
    label="Pool cover",
    meaning="A row of models, most newly solved questions per dollar first, while it pays",
    paper="",
    policy="farthing.methods.routers.pool_cover.policy:PoolCoverPolicy",
    learner="farthing.methods.routers.pool_cover.learner:POOL_COVER",
    action_spaces=("pool",),
    needs=("pool",),
    extras=("train",),
    varies_with=frozenset({"seed"}),
    tried_for=frozenset({"set"}),
    place=81,
)

"""Constrained policy optimisation: a network trained to cost least at a coverage.

Achiam and others 2017; the paper of CCPO holds itself against it in three forms.
"""

from farthing.methods.base import Method

POLICY = "farthing.methods.cpo.policy:NetworkPolicy"
LEARNER = "farthing.methods.cpo.learner:CPO"

CPO = Method(
    name="cpo",
    label="CPO",
    meaning="A network trained to cost least at the coverage asked for, acting by lot",
    paper="1705.10528",
    policy=POLICY,
    learner=LEARNER,
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    calibration="none",
    place=40,
)
CPO_BATCH = Method(
    name="cpo-batch",
    label="CPO batch",
    meaning="The same network with an exact threshold",
    paper="1705.10528",
    policy=POLICY,
    learner=LEARNER,
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    place=41,
)
CPO_ONLINE = Method(
    name="cpo-online",
    label="CPO online",
    meaning="The same network with a threshold tracked over its training episodes",
    paper="1705.10528",
    policy=POLICY,
    learner=LEARNER,
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    calibration="online",
    empty="allow",  # its online pass counts sets that may be empty
    place=42,
)

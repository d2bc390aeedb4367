"""Agreement cascade: cheap models whose answers agree are believed, else the strong one is."""

from farthing.methods.base import Method

AGREEMENT_CASCADE = Method(
    name="agreement-cascade",
    label="Agreement cascade",
    meaning="Asks two or three cheap models and answers where they agree, else asks the strong one",
    paper="2407.02348",
    policy="farthing.methods.cascades.agreement.policy:AgreementCascadePolicy",
    learner="farthing.methods.cascades.agreement.learner:AGREEMENT_CASCADE",
    action_spaces=("pool",),
    needs=("pool",),
    varies_with=frozenset(),
    tried_for=frozenset({"one"}),
    place=83,
)

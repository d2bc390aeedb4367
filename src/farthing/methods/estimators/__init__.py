"""How likely a model is right on a question, from a handful of its outcomes."""

from farthing.methods.base import SystemCard

V0 = SystemCard(
    name="v0",
    label="V_0",
    meaning="Reads a model's ability from a few outcomes, on directions that others' showed",
    kind="estimator",
    make="farthing.methods.estimators.fit_v0:V0",
    paper="2602.03584",
    page="docs/estimators.md",
    extras=("train",),
    place=10,
)

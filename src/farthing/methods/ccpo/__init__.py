"""Conformal constrained policy optimisation: a network and its threshold, learned together."""

from collections.abc import Sequence

from farthing.methods.base import Dataset, Method, Variant, load
from farthing.money import usd_from_nano

PAPER = "2511.11828"
POLICY = "farthing.methods.cpo.policy:NetworkPolicy"
SET_SIZE_PRICES = {
    "hotpotqa-llama2-7b": ("1e-4", "2e-4"),
    "hotpotqa-llama3.2-3b": ("1e-4",),
    "mmlu-llama2-7b": ("2e-4",),
    "mmlu-llama3.2-3b": ("1e-4", "2e-4"),
}
"""The prices of an answer, lambda in USD, that the paper's tables have for each pair of agents."""

CCPO = Method(
    name="ccpo",
    label="CCPO (λ=0)",
    meaning="A network and its threshold learned together, with the exact constraint and cost",
    paper=PAPER,
    policy=POLICY,
    learner="farthing.methods.ccpo.learner:CCPO",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    place=50,
)
CCPO_LAMBDA = Method(
    name="ccpo-lambda",
    label="CCPO (λ=0.86 rounds)",
    meaning="The same with a price on each answer in the set",
    paper=PAPER,
    policy=POLICY,
    learner="farthing.methods.ccpo.learner:CCPO_LAMBDA",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    place=51,
)
CCPO_PUBLISHED = Method(
    name="ccpo-published",
    label="CCPO as published",
    meaning="The paper's own: leaf count for the constraint, sampled cost, sets that may be empty",
    paper=PAPER,
    policy=POLICY,
    learner="farthing.methods.ccpo.learner:CCPO_PUBLISHED",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    empty="allow",
    place=52,
)


def _as_the_paper_tried(dataset: Dataset) -> Sequence[Variant]:
    """Return the paper's own with its prices of an answer, in dollars; on its presets alone."""
    if dataset.preset is None:
        return []
    round_usd = usd_from_nano(float(dataset.traces.round_cost_nano.mean()))
    published = load("farthing.methods.ccpo.learner:published")
    return [
        Variant(
            f"ccpo-published-lambda-{price}",
            f"CCPO as published (λ={price} USD)",
            published(float(price) / round_usd),
        )
        for price in SET_SIZE_PRICES.get(dataset.preset, ())
    ]


CCPO_PUBLISHED_LAMBDA = Method(
    name="ccpo-published-lambda",
    label="CCPO as published (λ in USD)",
    meaning="The paper's own with the prices on each answer that the paper tried",
    paper=PAPER,
    policy=POLICY,
    learner="farthing.methods.ccpo.learner:published",
    action_spaces=("rounds", "cascade"),
    extras=("train",),
    empty="allow",
    variants=_as_the_paper_tried,
    place=53,
)

"""What the policies of a comparison are, in a line each, for whoever meets their names first."""

from farthing.methods.cards import cards
from farthing.recommendation.base import Comparison

CPO = (
    "constrained policy optimisation (Achiam et al. 2017): a network trained for least cost at the "
    "coverage asked for. As it is, it draws its actions; “batch” sets a threshold on the "
    "calibration part, “online” keeps one tracked over the training questions"
)
CCPO = (
    "conformal CPO (arXiv 2511.11828): the network is trained together with its threshold, which "
    "is then set anew on the calibration part"
)
LAMBDA = (
    "the price of each answer in the returned set: “0.86 rounds” is 0.86 times the mean cost of a "
    "round, and the paper's own is in USD; at λ=0 only calls cost something"
)
POLICIES = {
    "random": ("Random", "draws each action by lot"),
    "llm-policy": ("LLM policy", "a model is shown both answers and names the action"),
    "exit": ("LLM-EXIT", "one model answers alone and says itself when to stop (Lu et al. 2025)"),
    "fixed": ("Fixed depth", "always runs so many rounds and returns every answer"),
    "uala": (
        "UALA",
        "returns the guide's answers; goes on while it doubts (Han et al. 2024)",
    ),
    "cpo": ("CPO", CPO),
    "ccpo": ("CCPO", CCPO),
    "stopping": ("Supervised stopping", "a regression says what the rounds to come would gain"),
    "lookahead": (
        "Look-ahead",
        "weighs what a round and the next would gain for their money",
    ),
    "lazy": ("Lazy", "the same for single calls, in whatever order"),
    "selective": ("Selective", "buys until one answer is sure enough; may give none"),
    "optimum": ("Optimum (known)", "knows the generator's probabilities, as no real policy can"),
}
"""By the beginning of their names: what tables call them, and what they do."""


def explained(comparison: Comparison) -> list[tuple[str, str]]:
    """Return the name and the meaning of every kind of policy that takes part, and of lambda."""
    found = dict(entry for row in comparison.rows for entry in _meaning(row.policy))
    if any("λ" in row.label for row in comparison.rows):
        found["λ"] = LAMBDA
    return list(found.items())


def _meaning(policy: str) -> list[tuple[str, str]]:
    """Return what a policy's kind is, or else what the card of its method says, if it has one."""
    for kind, entry in POLICIES.items():
        if f"{policy}-".startswith(f"{kind}-"):
            return [entry]
    methods = [card for card in cards() if f"{policy}-".startswith(f"{card.name}-")]
    closest = sorted(methods, key=lambda card: len(card.name))[-1:]
    return [(card.label, card.meaning[0].lower() + card.meaning[1:]) for card in closest]

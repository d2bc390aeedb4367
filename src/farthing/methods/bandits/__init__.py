"""Cold start: whom to ask where nothing was recorded yet, learned from grades as they come."""

from farthing.methods.base import SystemCard

KNAPSACK = SystemCard(
    name="knapsack",
    label="Bandit with knapsacks",
    meaning="Learns from grades which model is worth its price, whatever the question is",
    kind="bandit",
    make="farthing.methods.bandits.knapsack:KNAPSACK",
    paper="1904.07272",
    page="docs/cold-start.md",
    place=10,
)
SQUARECB = SystemCard(
    name="squarecb",
    label="SquareCB",
    meaning="Learns which model is worth its price on which question, by its words and group",
    kind="bandit",
    make="farthing.methods.bandits.squarecb:SQUARECB",
    paper="2412.00569",
    page="docs/cold-start.md",
    place=20,
)

"""Cold start: whom to ask where nothing was recorded yet, learned from grades as they come."""

from farthing.methods.base import SystemCard

KNAPSACK = SystemCard(
    name="knapsack",
    label="Bandit with knapsacks",
    meaning="Learns which model to ask, without reading questions, against a price of money",
    kind="bandit",
    make="farthing.methods.bandits.knapsack:KNAPSACK",
    paper="1904.07272",
    page="docs/cold-start.md",
    place=10,
)
SQUARECB = SystemCard(
    name="squarecb",
    label="SquareCB",
    meaning="Learns which model to ask on which question; the better one looks, the more often",
    kind="bandit",
    make="farthing.methods.bandits.squarecb:SQUARECB",
    paper="2412.00569",
    page="docs/cold-start.md",
    place=20,
)

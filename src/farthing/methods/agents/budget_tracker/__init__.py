"""The Budget Tracker: an agent with tools is told what it has used and has left (2511.17006)."""

from farthing.methods.base import SystemCard

BUDGET_TRACKER = SystemCard(
    name="budget-tracker",
    label="Budget Tracker (BATS)",
    meaning="Tells an agent with tools what it has used and has left, and how wide to explore",
    kind="agent",
    make="farthing.methods.agents.budget_tracker.tracker:BUDGET_TRACKER",
    paper="2511.17006",
    page="docs/budget-agents.md",
    place=10,
)

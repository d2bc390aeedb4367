"""BudgetMem: which tier of each memory module to pay for before answering (2602.06025)."""

from farthing.methods.base import SystemCard

CARD = SystemCard(
    name="budget-mem",
    label="BudgetMem",
    meaning="Chooses, question by question, which tier of each memory module to pay for",
    kind="agent",
    make="farthing.methods.agents.budget_mem.policy:BUDGET_MEM",
    paper="2602.06025",
    page="docs/budget-agents.md",
    extras=("search", "train"),
    place=20,
)

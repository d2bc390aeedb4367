"""BudgetMem: which tier of each memory module to pay for before answering (2602.06025)."""

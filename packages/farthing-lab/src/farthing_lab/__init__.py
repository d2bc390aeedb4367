"""The laboratory: CCPO, CORL and every budget-aware method, their training, their studies."""

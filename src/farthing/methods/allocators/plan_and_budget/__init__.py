"""Plan-and-Budget: tokens, samples or money for the parts of a task."""

from farthing.methods.base import SystemCard

PLAN_AND_BUDGET = SystemCard(
    name="plan-and-budget",
    label="Plan-and-Budget",
    meaning="Shares a budget among a task's parts, by how each part's errors fall with it",
    kind="allocator",
    make="farthing.methods.allocators.plan_and_budget.allocator:PLAN_AND_BUDGET",
    paper="2505.16122",
    page="docs/parts.md",
    place=40,
)

"""Who answers what, where many questions are known at once and one budget pays for all."""

from farthing.methods.base import SystemCard

LAGRANGIAN = SystemCard(
    name="lagrangian",
    label="Lagrangian and knapsack",
    meaning="One price of a dollar for all questions of a batch; exact around the last that fits",
    kind="allocator",
    make="farthing.methods.allocators.lagrangian:LAGRANGIAN",
    page="docs/allocators.md",
    place=10,
)

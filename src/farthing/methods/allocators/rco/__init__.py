"""RCO: descent along the surface of assignments that cost exactly the budget."""

from farthing.methods.base import SystemCard

RCO = SystemCard(
    name="rco",
    label="RCO",
    meaning="Descends along soft assignments that cost exactly the budget, then rounds them",
    kind="allocator",
    make="farthing.methods.allocators.rco.allocator:RCO",
    paper="2605.00649",
    page="docs/allocators.md",
    place=20,
)

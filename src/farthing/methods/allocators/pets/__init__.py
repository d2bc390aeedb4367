"""PETS: how many samples each question gets before a vote."""

from farthing.methods.base import SystemCard

PETS = SystemCard(
    name="pets",
    label="PETS",
    meaning="Takes samples of one model where a further one is likeliest to settle the vote",
    kind="allocator",
    make="farthing.methods.allocators.pets.allocator:PETS",
    paper="2602.16745",
    page="docs/allocators.md",
    place=30,
)

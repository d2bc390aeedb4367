"""One file a guarantee: its record, its proof, its words, and how it is checked again."""

from farthing.promises.kinds import (
    agreement,
    budget,
    escalated,
    groups,
    none,
    online,
    pac,
    parity,
    selective,
    split,
    weighted,
)

__all__ = [
    "agreement",
    "budget",
    "escalated",
    "groups",
    "none",
    "online",
    "pac",
    "parity",
    "selective",
    "split",
    "weighted",
]

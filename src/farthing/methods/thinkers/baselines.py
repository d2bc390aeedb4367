"""What thinkers are held to: right or wrong alone, and a price on each token."""

from dataclasses import dataclass

from farthing.methods.base import SystemCard
from farthing.methods.thinkers.base import AT_END, UNTOLD_ALONE, Thoughts, compared
from farthing.traces.arrays import FloatArray


@dataclass(frozen=True)
class RightAlone:
    """Plain group-relative training, r = 1 where right, by GRPO (arXiv 2402.03300)."""

    cuts: tuple[float, ...] = AT_END
    modes: tuple[str, ...] = UNTOLD_ALONE

    def advantage(self, thoughts: Thoughts, /) -> FloatArray:
        """Return the advantages, [n, 1]."""
        return compared(self.reward(thoughts), thoughts.group)

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        """Return whether each thought is right, [n]."""
        return thoughts.final


@dataclass(frozen=True)
class LengthPenalty:
    """Right, less a price for each token: r - price n / L."""

    price: float = 0.5
    """What a thought as long as the cap costs, in right answers."""
    cuts: tuple[float, ...] = AT_END
    modes: tuple[str, ...] = UNTOLD_ALONE

    def advantage(self, thoughts: Thoughts, /) -> FloatArray:
        """Return the advantages, [n, 1]."""
        return compared(self.reward(thoughts), thoughts.group)

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        """Return what each thought is worth, [n]."""
        worth: FloatArray = thoughts.final - self.price * thoughts.length / thoughts.cap
        return worth


RIGHT_ALONE = SystemCard(
    name="right-alone",
    label="Right answers alone",
    meaning="learns from right and wrong, whatever a thought's length",
    kind="thinker",
    make=RightAlone(),
    paper="2402.03300",
    page="docs/research/thinkers.md",
    extras=("lm",),
    place=10,
)
LENGTH_PENALTY = SystemCard(
    name="length-penalty",
    label="Length penalty",
    meaning="pays a fixed price for each token of a thought",
    kind="thinker",
    make=LengthPenalty(),
    page="docs/research/thinkers.md",
    extras=("lm",),
    place=11,
)

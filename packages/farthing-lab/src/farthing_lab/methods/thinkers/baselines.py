"""What thinkers are held to: right or wrong alone, and a price on each token."""

from dataclasses import dataclass

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import ComparedThinker, Thoughts, thinker_card


@dataclass(frozen=True)
class RightAlone(ComparedThinker):
    """Plain group-relative training, r = 1 where right, by GRPO (arXiv 2402.03300)."""

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        return thoughts.final


@dataclass(frozen=True)
class LengthPenalty(ComparedThinker):
    """Right, less a price for each token: r - price n / L."""

    price: float = 0.5
    """What a thought as long as the cap costs, in right answers."""

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        worth: FloatArray = thoughts.final - self.price * thoughts.length / thoughts.cap
        return worth


RIGHT_ALONE = thinker_card(
    name="right-alone",
    label="Right answers alone",
    meaning="learns from right and wrong, whatever a thought's length",
    make=RightAlone(),
    paper="2402.03300",
    place=10,
)
LENGTH_PENALTY = thinker_card(
    name="length-penalty",
    label="Length penalty",
    meaning="pays a fixed price for each token of a thought",
    make=LengthPenalty(),
    place=11,
)

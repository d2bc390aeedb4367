"""CIB: a thought is compressed given its prompt; a token costs what it says that is new.

The reward is r - beta sum over t of -log Q(z_t | prompt, z_<t), with a frozen prior Q. What follows
from what was said is cheap, so a detour by rote costs less than one that says something new; with
a uniform Q it is a price on length.

Source: the conditional information bottleneck of reasoning (arXiv 2603.08462). Q is the network
before its training here.
"""

from dataclasses import dataclass

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import ComparedThinker, Thoughts, thinker_card


@dataclass(frozen=True)
class Cib(ComparedThinker):
    """Right, less a price for each nat."""

    price: float = 0.02
    """beta: what a nat costs, in right answers."""

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        worth: FloatArray = thoughts.final - self.price * thoughts.surprisal()
        return worth


CIB = thinker_card(
    name="cib",
    label="CIB",
    meaning="pays for each token of a thought its surprisal under a frozen prior",
    make=Cib(),
    paper="2603.08462",
    place=25,
)

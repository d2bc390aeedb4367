"""Elastic Reasoning: thoughts are cut off in training, so that they learn to be of use by then.

Thought and answer have caps of their own. In training every thought is closed by force at its cap,
a share of what it could be, and the answer is given from what is there; the rest is plain
group-relative training. What learned under one cap does well under others, too.

Source: Scalable Chain of Thoughts via Elastic Reasoning (arXiv 2505.05315).
"""

from dataclasses import dataclass

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import ComparedThinker, Thoughts, thinker_card


@dataclass(frozen=True)
class Elastic(ComparedThinker):
    """Right answers of thoughts that were cut off."""

    cuts: tuple[float, ...] = (1 / 4,)
    """The cap of a thought, as a share of L; 1,000 of 5,000 tokens in the paper."""

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        return thoughts.final


ELASTIC = thinker_card(
    name="elastic",
    label="Elastic Reasoning",
    meaning="closes thoughts by force in training, and learns to have the answer by then",
    make=Elastic(),
    paper="2505.05315",
    place=23,
)

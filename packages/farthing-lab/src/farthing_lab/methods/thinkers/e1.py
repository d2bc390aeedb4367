"""e1: the prompt names an effort, relative to how long such a question is thought about today.

A right answer counts where the thought is no longer than a share e of the mean over this question's
thoughts: r 1[n / mean n(x) <= e]. So one model serves all efforts, and an effort means the same
for an easy question and a hard one.

Source: e1 (arXiv 2510.27042). The mean is over the thoughts of the update, where the paper has the
model's current mean; the efforts are ours.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import ComparedThinker, Thoughts, mean_of, thinker_card

EFFORTS = (0.5, 0.75, 1.0)
"""e of each mode: low, medium, high."""


@dataclass(frozen=True)
class E1(ComparedThinker):
    """Right answers of thoughts that keep their effort."""

    within_modes: ClassVar[bool] = True
    modes: tuple[str, ...] = ("low:", "medium:", "high:")

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        mean = mean_of(thoughts.length.astype(np.float64), thoughts.group)
        kept = thoughts.length <= np.array(EFFORTS)[thoughts.told] * mean
        worth: FloatArray = thoughts.final * kept
        return worth


E1_CARD = thinker_card(
    name="e1",
    label="e1",
    meaning="keeps to an effort that the prompt names, relative to the question's usual length",
    make=E1(),
    paper="2510.27042",
    place=24,
)

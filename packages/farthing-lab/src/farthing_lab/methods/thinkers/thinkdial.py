"""ThinkDial: three modes, first by fine-tuning on cut thoughts, then by rewards of two phases.

The prompt names a mode: high thinks as it likes, medium takes half of that, low a quarter. A
network is fine-tuned on its own thoughts, whole and cut to 1/2 and 1/4, with the answer made again;
what is right is kept, and shown as often for each mode. Then, with n the length, m the mean length
of the same question's thoughts in mode high, and s the mode's share 1, 1/2 or 1/4,

    first phase     right
    second phase    right - price max(0, n / m - s)

Thoughts of one question and one mode are compared.

Source: ThinkDial (arXiv 2508.18773): the modes and their shares, the fine-tuning, and that a phase
for accuracy alone comes before one that shapes the reward by mode. Its code is not published. Ours
are the formula of the second phase, that it is the second half of the updates, and that high is
what its price is relative to, so that it moves with what the network can do. The paper also forbids
to think on in the answer; the answer is one token here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import (
    ComparedThinker,
    Lesson,
    Thoughts,
    mean_of,
    thinker_card,
)

SHARES = (1 / 4, 1 / 2, 1.0)
"""s of each mode, and the parts that thoughts are cut to for it: low, medium, high."""


@dataclass(frozen=True)
class ThinkDial(ComparedThinker):
    """ThinkDial's judgement of thoughts, and what it is prepared by."""

    price: float = 0.5
    """What a thought of low or medium costs that is by the length of a high one too long, in right
    answers; ours."""
    within_modes: ClassVar[bool] = True
    modes: tuple[str, ...] = ("low:", "medium:", "high:")
    parts: tuple[float, ...] = SHARES

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        if thoughts.progress < 1 / 2:
            return thoughts.final
        high = (thoughts.told == len(SHARES) - 1).astype(np.float64)
        share = mean_of(high, thoughts.group)
        usual = mean_of(high * thoughts.length, thoughts.group) / np.where(share, share, np.nan)
        over = thoughts.length / np.maximum(usual, 1) - np.array(SHARES)[thoughts.told]
        priced = np.nan_to_num(np.maximum(over, 0)) * (1 - high)
        worth: FloatArray = thoughts.final - self.price * priced
        return worth

    def lessons(self, own: Thoughts, /) -> Iterator[Lesson]:
        right = [np.flatnonzero(own.right[:, part] == 1) for part in range(len(SHARES))]
        most = max(map(len, right))
        for part, mode in enumerate(self.modes):
            for row in np.resize(right[part], most if len(right[part]) else 0):
                yield Lesson(int(row), part, told=mode)


THINKDIAL = thinker_card(
    name="thinkdial",
    label="ThinkDial",
    meaning="keeps to one of three modes, learned from thoughts cut to a half and a quarter",
    make=ThinkDial(),
    paper="2508.18773",
    place=27,
)

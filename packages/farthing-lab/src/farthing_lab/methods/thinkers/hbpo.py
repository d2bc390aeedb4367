"""HBPO: thoughts of one question under several budgets, compared within and between these.

A question's thoughts are told budgets b in turn, 1/8, 1/4, 1/2 and 5/8 of the cap L (512 to 2,560
of 4,096 in the paper). With n the length and f(x) = beta cos(pi x / 2L), a right answer is worth

    min(f(n) - |n - b| / L, f(b))          (b is told)

and a wrong one nothing. The advantage is the reward in units of the group, r less the mean over
the question's thoughts by their deviation, plus what its budget's thoughts earn beyond what the
budget promises, (mean of the same b) - f(b): budgets compete, and one that is too tight loses.

Source: HBPO (arXiv 2507.15844), and `math_reward.py`, `core_algos.py` of the authors' code
(ZJU-REAL/HBPO): the reward is from there. The code adds the second part twice, the second time of
the episode before it; here it is added once, as the paper says.
"""

from dataclasses import dataclass

import numpy as np

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import (
    AT_END,
    UNTOLD,
    Thoughts,
    compared,
    mean_of,
    thinker_card,
)

SHARES = (1 / 8, 1 / 4, 1 / 2, 5 / 8)
"""The budgets, as shares of the cap."""


@dataclass(frozen=True)
class Hbpo:
    """HBPO's judgement of thoughts."""

    beta: float = 4.0
    """What the shortest right thought is worth."""
    cuts: tuple[float, ...] = AT_END
    modes: tuple[str, ...] = ("low:", "medium:", "high:", UNTOLD)

    def advantage(self, thoughts: Thoughts, /) -> FloatArray:
        budget, reward = _budget(thoughts), self.earned(thoughts)
        within = compared(reward, thoughts.group)[:, 0]
        together = thoughts.group * len(SHARES) + thoughts.told
        between = mean_of(reward, together) - self._worth(budget, thoughts.cap)
        return (within + between)[:, None]

    def earned(self, thoughts: Thoughts) -> FloatArray:
        """Return what each thought is worth under the budget that it was told, [n]."""
        budget = _budget(thoughts)
        away = np.abs(thoughts.length - budget) / thoughts.cap
        earned = self._worth(thoughts.length.astype(np.float64), thoughts.cap) - away
        worth: FloatArray = thoughts.final * np.minimum(earned, self._worth(budget, thoughts.cap))
        return worth

    def _worth(self, tokens: FloatArray, cap: int) -> FloatArray:
        worth: FloatArray = self.beta * np.cos(np.pi * tokens / (2 * cap))
        return worth


def _budget(thoughts: Thoughts) -> FloatArray:
    """Return the budget that each was told, in tokens, [n]."""
    budget: FloatArray = np.array(SHARES)[thoughts.told] * thoughts.cap
    return budget


HBPO = thinker_card(
    name="hbpo",
    label="HBPO",
    meaning="compares a question's thoughts under several budgets, within and between these",
    make=Hbpo(),
    paper="2507.15844",
    place=20,
)

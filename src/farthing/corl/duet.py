"""DUET: roll-outs by how open an outcome is and how many tokens an episode takes.

The variance of the prompts' mean rewards together is sum s_q^2 / n_q. Under a budget of tokens,
sum n_q L_q = B, it is least where

    n_q = clip(s_q / sqrt(lambda L_q), least, most)

with lambda such that the tokens are B: their sum falls as lambda rises, so bisection finds it.

Source: "DUET" (arXiv 2605.08441): roll-outs by how informative a prompt is and how long, under one
budget of tokens. That s_q = sqrt(p (1-p)) by what came of the prompt's kind so far, and both
bounds, are ours. Its rule for breaking off episodes under way is not here.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from farthing.corl.allocations import Prompts
from farthing.traces.arrays import FloatArray, IntArray


def shares(
    spread: FloatArray, length: FloatArray, tokens: float, least: float = 0.0, most: float = np.inf
) -> FloatArray:
    """Return how many episodes each prompt gets, [P], not rounded, whose tokens are the budget.

    Where the bounds allow no such sum they give way: `least` falls, or `most` rises, to the number
    that all alike would get.

    Args:
        spread: [P] standard deviation of each prompt's reward; where all are 0 all count alike.
        length: [P] tokens of an episode of each, above 0.
        tokens: the budget B, above 0.
        least: of each prompt.
        most: of each prompt.

    >>> shares(np.array([0.5, 0.5, 0.0]), np.array([10.0, 40.0, 10.0]), 600.0).round(6)
    array([20., 10.,  0.])
    """
    alike = tokens / float(length.sum())
    least, most = min(least, alike), max(most, alike)
    unit = spread / spread.max() if spread.max() > 0 else np.ones(len(spread))
    weight = np.maximum(unit, 1e-9) / np.sqrt(length)
    low, high = -700.0, 700.0  # log(1 / sqrt(lambda)); the tokens rise with it
    for _ in range(200):
        middle = (low + high) / 2.0
        each = np.clip(weight * np.exp(middle), least, most)
        low, high = (middle, high) if float(each @ length) < tokens else (low, middle)
    found: FloatArray = np.clip(weight * np.exp(high), least, most)
    return found


@dataclass(frozen=True)
class Duet:
    """The allocation `duet`: it shares the tokens that so many episodes take on average.

    >>> from farthing.tasks.base import Question
    >>> of = Prompts([Question("q", "?")] * 3, np.array([0.5, 0.5, 0.9]), np.array([10.0, 40, 10]))
    >>> DUET(of, 30)
    array([17,  8, 11])
    """

    in_tokens: ClassVar[bool] = True
    least: float = 2.0
    """Episodes of a prompt, so that they can be compared."""
    most: float = 8.0
    """Times what all alike would get."""

    def __call__(self, prompts: Prompts, episodes: int, /) -> IntArray:
        """Return how many episodes each prompt gets, [P]; their tokens are B or just below."""
        if not episodes:
            return np.zeros(len(prompts), dtype=np.int64)
        tokens = episodes * float(prompts.length.mean())
        spread = np.sqrt(prompts.chance * (1.0 - prompts.chance))
        most = self.most * tokens / float(prompts.length.sum())
        return rounded(
            shares(spread, prompts.length, tokens, self.least, most), prompts.length, tokens
        )


def rounded(share: FloatArray, length: FloatArray, tokens: float) -> IntArray:
    """Return whole numbers, [P], within the budget: less than one episode of the longest is left.

    All are rounded down; then those that lost most get one more, in turn, as long as it fits.
    """
    each: IntArray = np.floor(share + 1e-9).astype(np.int64)
    order = np.argsort(each - share, kind="stable").tolist()
    left = tokens * (1.0 + 1e-12) - float(each @ length)
    while fitting := [at for at in order if length[at] <= left]:
        for at in fitting:
            if length[at] <= left:
                each[at] += 1
                left -= float(length[at])
    return each


DUET = Duet()
"""The allocation `duet`."""

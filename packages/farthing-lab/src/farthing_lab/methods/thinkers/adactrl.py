"""AdaCtrl: a thought begins with a tag, easy or hard, and what calls itself easy must be short.

A question is easy where more than 5/8 of its thoughts are right. With n the length, and L the
longest of the question's thoughts, the reward is the sum of

    right      1 where it is right, else -1
    1/2 tag    1 where the tag says what the question is, 0 where not, -1 where there is no tag
    1/2 short  1 - (1 - cos(pi n / L)) / 2 where it is right and calls itself easy, else 0

Thoughts of one question are compared. So the network learns from its own success which questions it
may be short on. It has to know the tags: before that it is fine-tuned on thoughts that have them.

Source: AdaCtrl (arXiv 2505.18822), and `ray_trainer.py`, `naive.py`, `qwen-7b.sh` of the authors'
code (JoeYing1019/AdaCtrl): L, 5/8 and the weights are from there. For the fine-tuning they take
answers of a model that does not reason for easy questions, and of one that does for hard ones. Here
it is what the network itself thinks of them and is right: of an easy one no longer than the mean of
these, of a hard one all.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import BoolArray, FloatArray
from farthing_lab.lm.symbols import NUMBERS
from farthing_lab.methods.thinkers.base import (
    AT_END,
    ComparedThinker,
    Lesson,
    Thoughts,
    mean_of,
    thinker_card,
)

LIMIT = 5 / 8
"""A question is easy where a greater share of its thoughts is right."""


@dataclass(frozen=True)
class AdaCtrl(ComparedThinker):
    """AdaCtrl's judgement of thoughts, and what it is prepared by."""

    easy: int = NUMBERS["low:"]
    """The token that is the tag of easy questions; the embedded network has no other for it."""
    hard: int = NUMBERS["high:"]
    """The token that is the tag of hard ones."""
    parts: tuple[float, ...] = AT_END

    @classmethod
    def of(cls, tokenizer: Any, easy: str = "[Easy]", hard: str = "[Hard]") -> Self:
        """Return it with the tags of a tokenizer of the transformers library.

        Raises:
            InputError: one of them is not a single token; add it to the tokenizer first.
        """
        tags = [tokenizer.encode(one, add_special_tokens=False) for one in (easy, hard)]
        for text, ids in zip((easy, hard), tags, strict=True):
            if len(ids) != 1:
                raise InputError(f"'{text}' is {len(ids)} tokens; add it to the tokenizer as one")
        return cls(tags[0][0], tags[1][0])

    def reward(self, thoughts: Thoughts, /) -> FloatArray:
        right, length = thoughts.final, thoughts.length
        tag = np.where(_easy(thoughts), self.easy, self.hard)
        tagged = np.isin(thoughts.begins, (self.easy, self.hard))
        said = np.where(tagged, thoughts.begins == tag, -1.0)
        most = np.array([length[thoughts.group == one].max() for one in thoughts.group])
        short = (1 + np.cos(np.pi * length / np.maximum(most, 1))) / 2
        briefly: FloatArray = right * (thoughts.begins == self.easy) * short
        return 2 * right - 1 + 0.5 * said + 0.5 * briefly

    def lessons(self, own: Thoughts, /) -> Iterator[Lesson]:
        easy, rows = _easy(own), np.flatnonzero(own.final)
        usual = mean_of(own.length[rows].astype(np.float64), own.group[rows])
        for row, most in zip(rows.tolist(), usual, strict=True):
            if not easy[row]:
                yield Lesson(row, begins=(self.hard,))
            elif own.length[row] <= most:
                yield Lesson(row, begins=(self.easy,))


def _easy(thoughts: Thoughts) -> BoolArray:
    return mean_of(thoughts.final, thoughts.group) > LIMIT


ADACTRL = thinker_card(
    name="adactrl",
    label="AdaCtrl",
    meaning="calls a question easy or hard before it thinks, and is short on the easy ones",
    make=AdaCtrl(),
    paper="2505.18822",
    place=26,
)

"""How often a network is right, by kind and length of the question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.lm.symbols import END, MODES, NUMBERS, decode, encode
from farthing.lm.tiny import CONTEXT
from farthing.models.generation import Hook, Row, generate, without
from farthing.tasks.arithmetic import ARITHMETIC, LONGEST, Kind, Problem, Recipe, draw_of

LENGTHS: dict[Kind, Sequence[int]] = {
    "affine": range(1, LONGEST + 1),
    "sums": range(1, LONGEST + 1),
    "products": range(1, LONGEST + 1),
}
"""What is measured."""
TOGETHER = 250
"""Questions that are answered in one batch."""


@dataclass(frozen=True)
class Measured:
    """How a network did on the questions of one kind and length."""

    kind: Kind
    hops: int
    right: int
    asked: int
    symbols: int
    """That it wrote."""


def measure(network: Any, asked: int, seed: int, *, controls: bool = False) -> Iterator[Measured]:
    """Ask a network fresh questions of the part `test`, and count; it takes the likeliest symbols.

    Args:
        network: of `symbols.py`.
        asked: questions for each kind and length.
        seed: of the questions.
        controls: it is a controller; it has to answer by itself.
    """
    for kind, lengths in LENGTHS.items():
        for hops in lengths:
            drawn = draw_of("test", [Recipe(kind, hops)], np.random.default_rng([seed, hops]))
            problems = [next(drawn) for _ in range(asked)]
            texts = [MODES[-1] + one.text if controls else one.text for one in problems]
            replies = answered(network, texts, [alone] if controls else [])
            right = sum(_right(*pair) for pair in zip(problems, replies, strict=True))
            yield Measured(kind, hops, right, asked, sum(map(len, map(encode, replies))))


alone = without(NUMBERS["<call>"])
"""Forbids calls."""


def answered(network: Any, texts: Sequence[str], hooks: Sequence[Hook] = ()) -> list[str]:
    """Return what a network writes after each text, without its end."""
    replies = []
    for at in range(0, len(texts), TOGETHER):
        rows = [_row(text) for text in texts[at : at + TOGETHER]]
        for row, done in zip(rows, generate(network, rows, hooks), strict=True):
            written = [number for number in done.ids if number not in row.ends]
            replies.append(decode(written))
    return replies


def _row(text: str) -> Row:
    ids = encode(text)
    return Row(ids, max_tokens=CONTEXT - len(ids), ends=frozenset({NUMBERS[END]}))


def _right(problem: Problem, reply: str) -> bool:
    return ARITHMETIC.grade(reply, [problem.answer])

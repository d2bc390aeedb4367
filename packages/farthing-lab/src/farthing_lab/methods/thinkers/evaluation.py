"""What thinkers are measured by: accuracy against tokens, beside what was possible.

A thinker is asked at many caps, in each of its modes, or under many budgets. Each is a `Point`:
the tokens and the success of every question. A point is right where the answer is, *and* the
thought had derived it by then (`lm/overthinking.py`): an early lucky guess is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.lm.overthinking import shortest, sufficient
from farthing_lab.lm.symbols import decode, encode
from farthing_lab.methods.thinkers.budget_guidance import RemainingLength, guided
from farthing_lab.methods.thinkers.training import ENDS, digits, length, think
from farthing_lab.models.generation_rows import Generated
from farthing_lab.tasks.arithmetic import ChainProblem


@dataclass(frozen=True)
class Point:
    """What one setting of a thinker did, on the same questions as all others."""

    name: str
    tokens: IntArray
    """[n] of each question's thought."""
    right: BoolArray
    """[n]"""


def points_of(
    network: Any,
    problems: Sequence[ChainProblem],
    mode: str,
    caps: Sequence[int],
    seed: int,
) -> list[Point]:
    """Return a point for each cap: one thought a question is drawn, and cut at each of them."""
    prompts = [encode(mode + one.text) for one in problems]
    drawn = think(network, prompts, max(caps), np.random.default_rng(seed))
    return [_point(f"{mode}{cap}", network, problems, prompts, drawn, cap) for cap in caps]


def guided_points(
    network: Any,
    predictor: RemainingLength,
    problems: Sequence[ChainProblem],
    budgets: Sequence[int],
    seed: int,
) -> list[Point]:
    """Return a point for each budget that thoughts are guided to keep."""
    prompts = [encode(one.text) for one in problems]
    found = []
    for budget in budgets:
        with guided(network, predictor, budget, ENDS) as hook:
            drawn = think(network, prompts, budget, np.random.default_rng(seed), [hook])
        found.append(_point(f"{budget}", network, problems, prompts, drawn, budget))
    return found


def oracle_points(problems: Sequence[ChainProblem], caps: Sequence[int]) -> list[Point]:
    """Return what the shortest sufficient thought of each question comes to at each cap."""
    least = np.array([shortest(one) for one in problems])
    return [Point(f"{cap}", np.minimum(least, cap), least <= cap) for cap in caps]


def _point(
    name: str,
    network: Any,
    problems: Sequence[ChainProblem],
    prompts: Sequence[Sequence[int]],
    drawn: Sequence[Generated],
    cap: int,
) -> Point:
    tokens = np.array([min(length(one, len(one.ids)), cap) for one in drawn])
    cut = [list(one.ids[:stop]) for one, stop in zip(drawn, tokens, strict=True)]
    contexts = [[*prompt, *ids] for prompt, ids in zip(prompts, cut, strict=True)]
    said = digits(network, contexts).argmax(axis=1)
    derived = [sufficient(p, decode(ids)) is not None for p, ids in zip(problems, cut, strict=True)]
    right = [int(one.answer) for one in problems]
    return Point(name, tokens, (said == right) & np.array(derived))


def curve(points: Sequence[Point], most: FloatArray) -> FloatArray:
    """Return the best accuracy of a point that takes so many tokens a question or fewer, [k].

    >>> a = Point("a", np.array([10, 20]), np.array([True, False]))
    >>> b = Point("b", np.array([30, 30]), np.array([True, True]))
    >>> curve([a, b], np.array([5.0, 15.0, 40.0]))
    array([0. , 0.5, 1. ])
    """
    tokens = np.array([one.tokens.mean() for one in points])
    right = np.array([one.right.mean() for one in points])
    return np.array([right[tokens <= limit].max(initial=0.0) for limit in most])


def area(points: Sequence[Point], untrained: float) -> float:
    """Return the mean of the curve from a quarter to the whole of the untrained mean length."""
    return float(curve(points, np.linspace(untrained / 4, untrained, 61)).mean())


def tokens_at(points: Sequence[Point], accuracy: float) -> float:
    """Return the fewest tokens a question of a point that is so accurate; infinite without one.

    >>> b = Point("b", np.array([30, 30]), np.array([True, True]))
    >>> tokens_at([b], 0.9), tokens_at([], 0.9)
    (30.0, inf)
    """
    enough = [float(one.tokens.mean()) for one in points if one.right.mean() >= accuracy]
    return min(enough, default=float("inf"))

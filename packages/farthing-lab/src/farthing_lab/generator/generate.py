"""A generator of questions with known probabilities: the paper's protocol, made up but exact.

Nothing here was said by a language model. Every question has a hidden difficulty; base and guide
answer, agree and err with probabilities that are written down (`config`), so the cheapest policy is
known (`optimum`).
"""

import numpy as np
from numpy.typing import NDArray

from farthing.money import usd_from_nano
from farthing.traces.arrays import NO_SPLIT, BoolArray, Signal, TraceArrays
from farthing.traces.base import Call, Trace
from farthing_lab.generator.config import GeneratorConfig

MODELS = ("generator-base", "generator-guide")
"""The names that made-up calls carry in place of models'."""
RIGHT = 0
"""The hidden code of the right answer; the wrong ones are 1..W."""
NOBODY = -1
"""The hidden code of an answer that was not given yet."""
LARGEST_ENTROPY = float(np.log(2))
"""Entropy of a fair yes or no, in nats: where the scale of the guide's uncertainty ends."""

Codes = NDArray[np.int64]


def generate(config: GeneratorConfig, n: int, rng: np.random.Generator) -> TraceArrays:
    """Draw `n` questions with all their rounds, [n, T, 2] for base and guide.

    Ids read `generated-000001`, the models `generator-base` and `generator-guide`; difficulty is
    hidden. Signals: the guide's verdict and uncertainty, and both agents' tokens. The price of a
    call is exactly its tokens times their prices, and says nothing about the answers.
    """
    answers = _draw_answers(config, n, rng)
    shape = answers.shape
    calls = config.base_call, config.guide_call
    tokens = np.empty((*shape, 2), dtype=np.int64)  # input and output
    for role, call in enumerate(calls):
        varied = rng.integers(-call.spread, call.spread + 1, size=(n, config.rounds))
        grown = call.input_tokens + call.growth * np.arange(config.rounds)
        tokens[:, :, role, 0] = grown + varied
        tokens[:, :, role, 1] = call.output_tokens
    prices = [(call.input_nano, call.output_nano) for call in calls]
    agrees = answers[:, :, 0] == answers[:, :, 1]
    return TraceArrays(
        ids=np.array([f"generated-{i + 1:06d}" for i in range(n)], dtype=np.str_),
        roles=("base", "guide"),
        models=MODELS,
        answer=first_appearance(answers).astype(np.int16),
        correct=answers == RIGHT,
        cost_nano=(tokens * np.array(prices)).sum(axis=3),
        signals={
            "verdict": _guide_only(agrees),
            "uncertainty": _guide_only(_draw_uncertainty(config, answers[:, :, 1] == RIGHT, rng)),
            "input_tokens": tokens[:, :, :, 0].astype(np.float32),
            "output_tokens": tokens[:, :, :, 1].astype(np.float32),
        },
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, NO_SPLIT, dtype=np.int8),
        recorded=np.full(n, shape[1], dtype=np.int16),
        independent=np.zeros(n, dtype=bool),
    )


def first_appearance(codes: NDArray[np.int64]) -> Codes:
    """Name the answers of each question 0, 1, 2, ... in the order in which they appear.

    Args:
        codes: [n, T, L] any codes of answers, read round by round and role by role.

    >>> first_appearance(np.array([[[7, 7], [3, 7]]]))
    array([[[0, 0],
            [1, 0]]])
    """
    flat = codes.reshape(len(codes), -1)
    named = np.zeros_like(flat)
    seen = np.ones(len(flat), dtype=np.int64)
    for j in range(1, flat.shape[1]):
        same = flat[:, :j] == flat[:, j : j + 1]
        old = same.any(axis=1)
        earlier = np.take_along_axis(named, same.argmax(axis=1)[:, None], axis=1)[:, 0]
        named[:, j] = np.where(old, earlier, seen)
        seen += ~old
    return named.reshape(codes.shape)


def uncertainty_bin(config: GeneratorConfig, uncertainty: Signal) -> Codes:
    """Return the bin that each recorded uncertainty was drawn in, in the same shape."""
    bins: Codes = (uncertainty / LARGEST_ENTROPY * config.uncertainty.bins).astype(np.int64)
    return bins


def _draw_answers(config: GeneratorConfig, n: int, rng: np.random.Generator) -> Codes:
    """Return [n, T, 2] hidden codes of the answers of base and guide."""
    level = rng.choice(len(config.levels), size=n, p=config.mix)
    base = guide = np.full(n, NOBODY)
    rounds = []
    for t in range(config.rounds):
        base = _draw_base(config, level, base, t, rng)
        guide = _draw_guide(config, level, base, guide, rng)
        rounds.append(np.stack([base, guide], axis=1))
    return np.stack(rounds, axis=1)


def _draw_base(
    config: GeneratorConfig, level: Codes, previous: Codes, t: int, rng: np.random.Generator
) -> Codes:
    skill = config.per_level("base_later" if t else "base_first")[level]
    wrong = rng.integers(1, config.wrong_answers + 1, size=len(level))
    fresh = np.where(rng.random(len(level)) < skill, RIGHT, wrong)
    repeats = (rng.random(len(level)) < config.base_persistence) & (previous != NOBODY)
    return np.where(repeats, previous, fresh)


def _draw_guide(
    config: GeneratorConfig, level: Codes, base: Codes, previous: Codes, rng: np.random.Generator
) -> Codes:
    n, base_right = len(level), base == RIGHT
    says_yes = np.where(
        base_right, config.per_level("yes_if_right")[level], config.per_level("yes_if_wrong")[level]
    )
    yes = rng.random(n) < says_yes
    any_wrong = rng.integers(1, config.wrong_answers + 1, size=n)
    other_wrong = rng.integers(1, config.wrong_answers, size=n)
    other_wrong += other_wrong >= base
    right = rng.random(n) < config.per_level("guide")[level]
    fresh = np.where(base_right, any_wrong, np.where(right, RIGHT, other_wrong))
    repeats = (rng.random(n) < config.guide_persistence) & (previous != NOBODY) & (previous != base)
    return np.where(yes, base, np.where(repeats, previous, fresh))


def _draw_uncertainty(
    config: GeneratorConfig, right: BoolArray, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return [n, T] a number in the bin drawn, off its edges so that rounding cannot move it."""
    bins = config.uncertainty.bins
    draw = rng.random(right.shape)
    bin_if_right = np.searchsorted(config.uncertainty.if_right.cumsum()[:-1], draw, side="right")
    bin_if_wrong = np.searchsorted(config.uncertainty.if_wrong.cumsum()[:-1], draw, side="right")
    inside = rng.uniform(0.01, 0.99, size=right.shape)
    return (np.where(right, bin_if_right, bin_if_wrong) + inside) / bins * LARGEST_ENTROPY


def _guide_only(values: NDArray[np.float64] | BoolArray) -> Signal:
    """Return [n, T, 2] a signal that only the guide has."""
    signal = np.full((*values.shape, 2), np.nan, dtype=np.float32)
    signal[:, :, 1] = values
    return signal


def generate_traces(config: GeneratorConfig, n: int, rng: np.random.Generator) -> list[Trace]:
    """Draw `n` questions as records; the same `rng` gives the questions of `generate`.

    Every call carries `correct`; answers read `candidate 1`, `candidate 2`, ... in the order in
    which a question brings them up, so that their text tells nothing. Questions have no text:
    nobody was asked.
    """
    arrays = generate(config, n, rng)
    return [
        Trace(
            id=str(arrays.ids[i]),
            calls=[_call(arrays, i, t, role) for t in range(arrays.horizon) for role in range(2)],
        )
        for i in range(n)
    ]


def _call(arrays: TraceArrays, i: int, t: int, role: int) -> Call:
    def signal(name: str) -> float:
        return float(arrays.signals[name][i, t, role])

    is_guide = arrays.roles[role] == "guide"
    return Call(
        round=t + 1,
        role=arrays.roles[role],
        model=arrays.models[role],
        answer=f"candidate {arrays.answer[i, t, role] + 1}",
        correct=bool(arrays.correct[i, t, role]),
        verdict=bool(signal("verdict")) if is_guide else None,
        uncertainty=signal("uncertainty") if is_guide else None,
        input_tokens=int(signal("input_tokens")),
        output_tokens=int(signal("output_tokens")),
        cost_usd=usd_from_nano(int(arrays.cost_nano[i, t, role])),
    )

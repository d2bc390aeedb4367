"""Fit the model of a conversation to recorded ones, by expectation and maximisation.

Which answers are right is recorded. Hidden are each question's level of difficulty, and whether an
answer that repeats the last one was given afresh (Dempster, Laird and Rubin 1977).
"""

from dataclasses import dataclass, replace

import numpy as np

from farthing.methods.lookahead.latent_difficulty import LatentDifficulty, TalkPattern
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

AGENTS = ("base", "guide")
"""The roles of a conversation."""
LEVELS = 2
BINS = 10
"""Of the guide's signal, about as many answers in each."""
SIGNALS = ("uncertainty", "confidence")
"""What a guide may tell of its answer; the first of them that was recorded is used."""
WRONG_ANSWERS = (2, 3, 5, 10, 20, 50)
"""The numbers that are tried."""
FIRST_STEPS = 20
"""Steps after which the likeliest number of wrong answers is chosen."""
STEPS = 80
LOW, HIGH = 0.001, 0.999
"""Between these lies every rate that is fitted."""


def fit_latent_difficulty(train: TraceArrays) -> LatentDifficulty:
    """Return the likeliest model of recorded conversations, roles base and guide.

    >>> from farthing_lab.generator.generate import generate
    >>> from farthing_lab.generator.presets import preset
    >>> traces = generate(preset("mmlu-llama2-7b").config, 500, np.random.default_rng(0))
    >>> model = fit_latent_difficulty(traces)
    >>> model.wrong_answers, model.signal
    (3, 'uncertainty')
    """
    start = _start(train)
    lesson = _Conversations.of(train, start)
    tried = [
        _improved(replace(start, wrong_answers=number), lesson, FIRST_STEPS)
        for number in WRONG_ANSWERS
    ]
    likeliest = max(tried, key=lambda model: float(lesson.weigh(model)[1].sum()))
    return _improved(likeliest, lesson, STEPS)


@dataclass(frozen=True)
class _Conversations:
    said: TalkPattern
    right: BoolArray
    """[n, T, 2]"""
    bins: IntArray
    """[n, T]"""
    made: BoolArray
    """[n, T] whether the round was recorded."""

    @classmethod
    def of(cls, train: TraceArrays, model: LatentDifficulty) -> "_Conversations":
        made = np.arange(train.horizon) < train.recorded[:, None]
        return cls(TalkPattern.of(train.answer), train.correct, model.bins(train), made)

    def weigh(self, model: LatentDifficulty) -> tuple[FloatArray, FloatArray]:
        """Return P(level | everything), [n, K], and log P(everything), [n]."""
        rounds = model.log_likelihood(self.said, self.right, self.bins)
        weight = np.where(self.made[:, :, None], rounds, 0.0).sum(axis=1) + np.log(model.share)
        total = np.logaddexp.reduce(weight, axis=1)
        return np.exp(weight - total[:, None]), total


def _start(train: TraceArrays) -> LatentDifficulty:
    """Begin with levels that differ, an easy one first."""
    edges, signal = np.zeros(0), ""
    made = np.arange(train.horizon) < train.recorded[:, None]
    for name in SIGNALS:
        values = train.signals[name][:, :, 1][made] if name in train.signals else np.zeros(0)
        values = values[np.isfinite(values)]
        if values.size and not signal:
            edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
            signal = name
    easy = np.linspace(1.0, 0.25, LEVELS)
    nothing = np.ones(len(edges) + 2)
    model = LatentDifficulty(
        share=np.full(LEVELS, 1.0 / LEVELS),
        base_first=0.5 * easy,
        base_later=0.5 * easy,
        guide=0.9 * easy,
        yes_if_right=0.6 + 0.3 * easy,
        yes_if_wrong=0.3 - 0.25 * easy,
        edges=edges,
        if_right=nothing,
        if_wrong=nothing,
        base_persistence=0.4,
        guide_persistence=0.5,
        wrong_answers=WRONG_ANSWERS[0],
        signal=signal,
    )
    bins, right = model.bins(train), train.correct[:, :, 1]
    return replace(
        model,
        if_right=_shares(bins[made & right], len(nothing)),
        if_wrong=_shares(bins[made & ~right], len(nothing)),
    )


def _shares(bins: IntArray, size: int) -> FloatArray:
    counts = np.bincount(bins, minlength=size) + 1.0
    shares: FloatArray = counts / counts.sum()
    return shares


def _improved(model: LatentDifficulty, lesson: _Conversations, steps: int) -> LatentDifficulty:
    for _ in range(steps):
        model = _step(model, lesson)
    return model


def _step(model: LatentDifficulty, lesson: _Conversations) -> LatentDifficulty:
    said, right = lesson.said, lesson.right
    level = lesson.weigh(model)[0]
    weight = level[:, None, :] * lesson.made[:, :, None]
    base_right, guide_right = right[:, :, 0], right[:, :, 1]
    base, guide = model.fresh(said, right)
    base_kept = _kept(base, said, 0, model.base_persistence)
    guide_kept = _kept(guide, said, 1, model.guide_persistence)
    base_afresh = weight * (1 - base_kept)
    rejects = weight * ~said.agrees[:, :, None]
    guide_afresh = rejects * (1 - guide_kept) * ~base_right[:, :, None]
    return replace(
        model,
        share=(level.sum(axis=0) + 1.0) / (len(level) + LEVELS),
        base_first=_rates(base_afresh[:, :1], base_right[:, :1]),
        base_later=_rates(base_afresh[:, 1:], base_right[:, 1:]),
        guide=_rates(guide_afresh, guide_right),
        yes_if_right=_rates(weight * base_right[:, :, None], said.agrees),
        yes_if_wrong=_rates(weight * ~base_right[:, :, None], said.agrees),
        base_persistence=_persistence(weight, base_kept, said.may_repeat[:, :, 0]),
        guide_persistence=_persistence(rejects, guide_kept, said.may_repeat[:, :, 1]),
    )


def _kept(fresh: FloatArray, said: TalkPattern, agent: int, persistence: float) -> FloatArray:
    """Return P(the answer was kept, not given afresh | it), [n, T, K]."""
    can = (said.may_repeat & said.repeats)[:, :, agent, None]
    kept: FloatArray = np.where(can, persistence / (persistence + (1 - persistence) * fresh), 0.0)
    return kept


def _rates(weight: FloatArray, happened: BoolArray) -> FloatArray:
    """Return how often it happened at each level, [K], shrunk by one case to all levels' rate.

    Args:
        weight: [n, T, K] of each round at each level.
        happened: [n, T]
    """
    often, cases = weight[happened].sum(axis=0), weight.sum(axis=(0, 1))
    overall = (often.sum() + 0.5) / (cases.sum() + 1.0)
    rates: FloatArray = np.clip((often + overall) / (cases + 1.0), LOW, HIGH)
    return rates


def _persistence(weight: FloatArray, kept: FloatArray, can: BoolArray) -> float:
    often, cases = (weight * kept)[can].sum(), weight[can].sum()
    return float(np.clip((often + 0.5) / (cases + 1.0), LOW, HIGH))

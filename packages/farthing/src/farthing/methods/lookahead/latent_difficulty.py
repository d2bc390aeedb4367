"""A model of a base and a guide in conversation: how hard a question is, and which answer is right.

Both are hidden. What is said narrows them down by Bayes' rule, and so tells how likely the next
round is to bring the first right answer. It is a latent class model in the manner of Dawid and
Skene (1979), for two agents who talk in rounds and are stubborn. Its levels are those of
`farthing_lab.generator.generate`: what that draws from, this is fitted to recordings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

Codes = NDArray[np.integer]
ARRAYS = (
    "share",
    "base_first",
    "base_later",
    "guide",
    "yes_if_right",
    "yes_if_wrong",
    "edges",
    "if_right",
    "if_wrong",
)
SETTINGS = ("base_persistence", "guide_persistence", "wrong_answers", "signal")
LEAST = 1e-4
"""No gain is taken to be less likely than this, nor more likely than one less it."""
BLOCK = 8_192
"""Questions that are weighed at a time."""
ROOM = 1e-6
"""Wrong answers that are left where all that the model has were given: as good as none."""


@dataclass(frozen=True)
class LatentDifficulty:
    """What two agents say at each level of difficulty.

    In each round the base repeats its last answer with probability `base_persistence`, or else
    answers afresh. The guide agrees or does not; if not, it repeats its own last answer with
    probability `guide_persistence` where that differs from the base's, or else answers afresh.
    """

    share: FloatArray
    """[K] of the questions at each level."""
    base_first: FloatArray
    """[K] P(the base is right in round 1)."""
    base_later: FloatArray
    """[K] P(a fresh answer of the base is right in a later round)."""
    guide: FloatArray
    """[K] P(a fresh answer of the guide is right, having rejected a wrong one)."""
    yes_if_right: FloatArray
    """[K] P(the guide agrees) when the base is right."""
    yes_if_wrong: FloatArray
    """[K] P(the guide agrees) when the base is wrong."""
    edges: FloatArray
    """[B - 1] where the bins of the guide's signal meet."""
    if_right: FloatArray
    """[B + 1] P(bin) where the guide's answer is right; the last is for no signal."""
    if_wrong: FloatArray
    """[B + 1] P(bin) where it is wrong."""
    base_persistence: float
    guide_persistence: float
    wrong_answers: int
    """How many there are, all equally likely."""
    signal: str
    """The name of the guide's signal; empty for none."""

    def bins(self, traces: TraceArrays) -> IntArray:
        """Return the bin of the guide's signal in each round, [n, T]; B where there is none."""
        nothing = len(self.if_right) - 1
        if self.signal not in traces.signals:
            return np.full(traces.answer.shape[:2], nothing)
        return self.bin_of(traces.signals[self.signal][:, :, 1])

    def bin_of(self, values: NDArray[np.floating]) -> IntArray:
        """Return the bin of some values of the signal; B where one is NaN."""
        found = np.searchsorted(self.edges, values, side="right")
        return np.where(np.isnan(values), len(self.if_right) - 1, found)

    def log_likelihood(self, said: "TalkPattern", right: BoolArray, bins: IntArray) -> FloatArray:
        """Return log P(a round | those before it, level), [..., n, T, K].

        Logarithms, because of a hundred rounds the product is too small a number.

        Args:
            said: what was said.
            right: [..., n, T, 2] whether each answer is right.
            bins: [n, T] of the guide's signal.
        """
        base, guide = self.fresh(said, right)
        base = self._spoken(base, said, 0, self.base_persistence)
        guide = self._spoken(guide, said, 1, self.guide_persistence)
        agrees = np.where(right[..., :1], self.yes_if_right, self.yes_if_wrong)
        guide = np.where(said.agrees[:, :, None], agrees, (1 - agrees) * guide)
        confidence = np.where(right[..., 1], self.if_right[bins], self.if_wrong[bins])
        with np.errstate(divide="ignore"):  # a bin that was ruled out
            log_likelihood: FloatArray = np.log(base * guide * confidence[..., None])
        return log_likelihood

    def fresh(self, said: "TalkPattern", right: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return P(an answer like this | given afresh, level) of base and guide, [..., n, T, K]."""
        base_right, guide_right = right[..., :1], right[..., 1:]
        ways = said.ways(right, self.wrong_answers)
        later = np.arange(right.shape[-2])[:, None] > 0
        skill = np.where(later, self.base_later, self.base_first)
        base = np.where(base_right, skill, (1 - skill) * ways[..., :1] / self.wrong_answers)
        wrong = (1 - self.guide) * ways[..., 1:] / (self.wrong_answers - 1)
        guide = np.where(guide_right, self.guide, wrong)
        # it rejected a right answer, so that its own is any of the wrong ones
        guide = np.where(base_right, ways[..., 1:] / self.wrong_answers, guide)
        return base, guide

    @staticmethod
    def _spoken(
        fresh: FloatArray, said: "TalkPattern", agent: int, persistence: float
    ) -> FloatArray:
        kept = np.where(said.may_repeat[:, :, agent, None], persistence, 0.0)
        spoken: FloatArray = kept * said.repeats[:, :, agent, None] + (1 - kept) * fresh
        return spoken

    def unfound(self, traces: TraceArrays) -> FloatArray:
        """Return P(level, and no answer so far is right | what was said), [n, T, K].

        The right answer is one of those that were given so far, or none: Bayes' rule weighs them.
        """
        said, bins = TalkPattern.of(traces.answer), self.bins(traces)
        share = np.log(self.share)

        def so_far(right: BoolArray) -> FloatArray:
            log_likely: FloatArray = self.log_likelihood(said, right, bins).cumsum(axis=-2) + share
            return log_likely

        unfound = so_far(np.zeros(traces.answer.shape, dtype=bool))
        total = np.logaddexp.reduce(unfound, axis=2)
        codes = np.unique(traces.answer[traces.answer != NO_ANSWER])
        some = max(BLOCK // max(len(traces), 1), 1)  # of few questions, all codes at once
        for start in range(0, len(codes), some):
            right = traces.answer == codes[start : start + some, None, None, None]
            given = np.logical_or.accumulate(right.any(axis=3), axis=2)
            found = np.logaddexp.reduce(so_far(right), axis=3)
            for each in np.where(given, found, -np.inf):
                total = np.logaddexp(total, each)
        weight: FloatArray = np.exp(unfound - total[:, :, None])
        return weight

    def hazard(self, same: BoolArray) -> FloatArray:
        """Return P(the next round has a right answer | level, none so far), [..., K].

        `same` says whether base and guide now give the same wrong answer.
        """
        base = (1 - self.base_persistence) * self.base_later
        chance = (1 - self.base_persistence) * (1 - self.base_later) / self.wrong_answers
        joins = np.where(same[..., None], self.base_persistence, 0.0) + chance
        afresh = 1 - base - self.guide_persistence * (1 - base - joins)
        found: FloatArray = base + afresh * (1 - self.yes_if_wrong) * self.guide
        return found

    def outlook(self, traces: TraceArrays) -> FloatArray:
        """Return the log-odds that the next round brings the first right answer, or any later one.

        Returns:
            [n, T, 2] after each round. What any later one brings is taken from the next one's odds.
        """
        parts = [
            self._outlook(traces.rows(slice(start, start + BLOCK)))
            for start in range(0, len(traces), BLOCK)
        ]
        return np.concatenate(parts)

    def _outlook(self, traces: TraceArrays) -> FloatArray:
        unfound = self.unfound(traces)
        hazard = self.hazard(traces.answer[:, :, 0] == traces.answer[:, :, 1])
        left = np.arange(traces.horizon - 1, -1, -1)[:, None]
        soon = (unfound * hazard).sum(axis=2)
        ever = (unfound * (1 - (1 - hazard) ** left)).sum(axis=2)
        chance = np.clip(np.stack([soon, ever], axis=2), LEAST, 1 - LEAST)
        odds: FloatArray = np.log(chance / (1 - chance))
        return odds

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return its arrays and settings, as a bundle keeps them."""
        arrays = {f"latent.{name}": getattr(self, name) for name in ARRAYS}
        return arrays, {name: getattr(self, name) for name in SETTINGS}

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild it from what `to_state` returned."""
        found: dict[str, Any] = {name: arrays[f"latent.{name}"] for name in ARRAYS}
        return cls(**found, **settings)


@dataclass(frozen=True)
class TalkPattern:
    """What base and guide said, whichever answer is right."""

    agrees: BoolArray
    """[n, T] whether the guide gives the base's answer."""
    repeats: BoolArray
    """[n, T, 2] whether each repeats its own last answer."""
    may_repeat: BoolArray
    """[n, T, 2] whether it has one to repeat; the guide, one that is not the base's."""
    is_new: BoolArray
    """[n, T, 2] whether nobody gave this answer before."""
    before: IntArray
    """[n, T, 2] distinct answers given before."""

    @classmethod
    def of(cls, answer: Codes) -> Self:
        """Look at codes of answers, [n, T, 2]; to give none is an answer, and never right."""
        last = np.roll(answer, 1, axis=1)
        spoke = np.ones(answer.shape, dtype=bool)
        spoke[:, 0] = False
        flat = answer.reshape(len(answer), -1)
        known = np.tril(flat[:, :, None] == flat[:, None, :], k=-1).any(axis=2)
        before = (~known).cumsum(axis=1) - ~known
        may_repeat = spoke.copy()
        may_repeat[:, :, 1] &= last[:, :, 1] != answer[:, :, 0]
        return cls(
            answer[:, :, 0] == answer[:, :, 1],
            spoke & (last == answer),
            may_repeat,
            ~known.reshape(answer.shape),
            before.reshape(answer.shape),
        )

    def ways(self, right: BoolArray, wrong_answers: int) -> FloatArray:
        """Return how many wrong answers would look like this one, [..., n, T, 2].

        One that was given before is itself; a new one is any that was not.
        """
        flat = right.reshape(*right.shape[:-2], -1)
        found = np.logical_or.accumulate(flat, axis=-1) & ~flat
        wrong_before = self.before - found.reshape(right.shape)
        return np.where(self.is_new, np.maximum(wrong_answers - wrong_before, ROOM), 1.0)

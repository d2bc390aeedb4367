"""Everything that can be observed of a generated question, and how likely it is.

Answers matter only through which of them are equal, so a history is the sequence of labels 0, 1,
2, ... (in order of first appearance) that base and guide gave, with the guide's uncertainty bins.
The verdicts follow: the guide says yes exactly when both labels are equal.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import NOBODY

MAX_HISTORIES = 1_000_000
"""The most histories of one round that are enumerated; four rounds of three bins have 5,000."""
UNSEEN = 0
"""The column of `Histories.weight` for: the right answer was not given yet."""


@dataclass(frozen=True, eq=False)
class Histories:
    """All `H` histories after one round that can happen, in ascending order of `key`."""

    key: IntArray
    """[H] what `child_key` makes of the parent and of the round's labels and bin."""
    parent: IntArray
    """[H] index of the history one round earlier."""
    seen: IntArray
    """[H] number of distinct answers so far."""
    base: IntArray
    """[H] label of the base's last answer; -1 before round 1."""
    guide: IntArray
    """[H] label of the guide's last answer; -1 before round 1."""
    weight: FloatArray
    """[H, levels, 1 + labels] joint probability of the history, the level, and which answer is the
    right one: column 0 for none so far, column 1 + l for label l."""

    def __len__(self) -> int:
        return len(self.key)

    @property
    def probability(self) -> FloatArray:
        """[H] probability of each history."""
        total: FloatArray = self.weight.sum(axis=(1, 2))
        return total


class _LabelledAnswers(NamedTuple):
    """What one round showed, and the weights of the histories (rows of one size) that show it."""

    base: int
    guide: int
    weight: FloatArray


def enumerate_histories(config: GeneratorConfig, rounds: int) -> list[Histories]:
    """Return the histories after rounds 1..`rounds`."""
    levels = [_nothing_yet(config, rounds)]
    for t in range(rounds):
        _refuse_too_many(config, levels[-1], t)
        levels.append(_after_one_more(config, levels[-1], t))
    return levels[1:]


def child_key(
    config: GeneratorConfig, parent: IntArray, base: IntArray, guide: IntArray, drawn: IntArray
) -> IntArray:
    """Number the histories of a round by parent, labels and uncertainty bin, in that order."""
    labels = 2 * config.rounds
    key: IntArray = ((parent * labels + base) * labels + guide) * config.uncertainty.bins + drawn
    return key


def first_seen_next(config: GeneratorConfig, histories: Histories) -> FloatArray:
    """Return P(history, and the right answer appears first in the round after it), [H]."""
    unseen = histories.weight[:, :, UNSEEN]
    base_right = (1 - config.base_persistence) * config.per_level("base_later")
    same = (histories.base == histories.guide)[:, None]
    onto_guide = config.base_persistence * same + (
        (1 - config.base_persistence) * (1 - config.per_level("base_later")) / config.wrong_answers
    )
    answers_afresh = onto_guide + (1 - config.guide_persistence) * (1 - base_right - onto_guide)
    guide_right = (1 - config.per_level("yes_if_wrong")) * config.per_level("guide")
    gained: FloatArray = (unseen * (base_right + answers_afresh * guide_right)).sum(axis=1)
    return gained


def _nothing_yet(config: GeneratorConfig, rounds: int) -> Histories:
    weight = np.zeros((1, len(config.levels), 1 + 2 * rounds))
    weight[0, :, UNSEEN] = config.mix
    zero = np.zeros(1, dtype=np.int64)
    return Histories(zero, zero, zero, zero + NOBODY, zero + NOBODY, weight)


def _refuse_too_many(config: GeneratorConfig, histories: Histories, t: int) -> None:
    k = histories.seen
    if ((k * k + 2 * k + 2).sum() * config.uncertainty.bins) > MAX_HISTORIES:
        raise InputError(
            f"the exact optimum over {config.rounds} rounds would need more than {MAX_HISTORIES:,} "
            f"histories in round {t + 1}; take fewer rounds or uncertainty bins, or compare with "
            "the stopping policy fitted on many generated questions, which comes close to it"
        )


def _after_one_more(config: GeneratorConfig, before: Histories, t: int) -> Histories:
    parents, shown, weights = [], [], []
    for k in np.unique(before.seen).tolist():
        rows = np.flatnonzero(before.seen == k)
        for said in _round(config, before, rows, k, t):
            now_seen = max(k, said.base + 1, said.guide + 1)
            for drawn, weight in enumerate(_with_bins(config, said)):
                happens = weight.sum(axis=(1, 2)) > 0
                parents.append(rows[happens])
                shown.append(np.tile((now_seen, said.base, said.guide, drawn), (happens.sum(), 1)))
                weights.append(weight[happens])
    parent, weight = np.concatenate(parents), np.concatenate(weights)
    seen, base, guide, drawn = np.concatenate(shown).T
    key = child_key(config, parent, base, guide, drawn)
    order = np.argsort(key)
    return Histories(
        key[order], parent[order], seen[order], base[order], guide[order], weight[order]
    )


def _round(
    config: GeneratorConfig, before: Histories, rows: NDArray[np.int64], k: int, t: int
) -> Iterator[_LabelledAnswers]:
    for base in range(k + 1):
        weight = _base_says(config, before.weight[rows], before.base[rows], k, label=base, t=t)
        now_seen = max(k, base + 1)
        for guide in range(now_seen + 1):
            shown = _guide_says(
                config, weight, before.guide[rows], now_seen, base=base, label=guide
            )
            yield _LabelledAnswers(base, guide, shown)


def _base_says(
    config: GeneratorConfig, weight: FloatArray, previous: IntArray, k: int, *, label: int, t: int
) -> FloatArray:
    wrong = config.wrong_answers
    skill = config.per_level("base_later" if t else "base_first")[:, None]
    repeats = (config.base_persistence if t else 0.0) * (previous == label)[:, None, None]
    afresh = 1 - config.base_persistence if t else 1.0
    if label < k:
        chance = np.broadcast_to((1 - skill) / wrong, weight.shape[1:]).copy()
        chance[:, 1 + label] = skill[:, 0]
        old: FloatArray = weight * (repeats + afresh * chance)
        return old
    chance = (1 - skill) * _wrong_not_given(weight, wrong, k) / wrong
    after: FloatArray = weight * afresh * chance
    after[:, :, 1 + label] = weight[:, :, UNSEEN] * afresh * skill[:, 0]
    return after


def _guide_says(
    config: GeneratorConfig,
    weight: FloatArray,
    previous: IntArray,
    k: int,
    *,
    base: int,
    label: int,
) -> FloatArray:
    """Return the weights of the histories in which the guide's answer is `label`, base's `base`."""
    wrong = config.wrong_answers
    yes = np.broadcast_to(config.per_level("yes_if_wrong")[:, None], weight.shape[1:]).copy()
    yes[:, 1 + base] = config.per_level("yes_if_right")
    if label == base:
        return weight * yes
    weight = weight * (1 - yes)
    differs = (previous != NOBODY) & (previous != base)
    keeps = config.guide_persistence * differs[:, None, None]
    repeats = keeps * (previous == label)[:, None, None]
    skill = config.per_level("guide")[:, None]
    if label < k:
        chance = np.broadcast_to((1 - skill) / (wrong - 1), weight.shape[1:]).copy()
        chance[:, 1 + base] = 1 / wrong
        chance[:, 1 + label] = skill[:, 0]
        old: FloatArray = weight * (repeats + (1 - keeps) * chance)
        return old
    chance = (1 - skill) * _wrong_not_given(weight, wrong, k) / (wrong - 1)
    chance[:, 1 + base] = (wrong - k + 1) / wrong
    weight = weight * (1 - keeps)
    after: FloatArray = weight * chance
    after[:, :, 1 + label] = weight[:, :, UNSEEN] * skill[:, 0]
    return after


def _wrong_not_given(weight: FloatArray, wrong: int, k: int) -> FloatArray:
    """Return how many wrong answers are new when `k` answers are not, for each column of weight."""
    left = np.full(weight.shape[2], wrong - k + 1.0)
    left[UNSEEN] = wrong - k
    return left


def _with_bins(config: GeneratorConfig, said: _LabelledAnswers) -> list[FloatArray]:
    """Return the weights for each bin of the guide's uncertainty."""
    pairs = zip(config.uncertainty.if_right, config.uncertainty.if_wrong, strict=True)
    binned = []
    for if_right, if_wrong in pairs:
        weight = said.weight * if_wrong
        weight[:, :, 1 + said.guide] = said.weight[:, :, 1 + said.guide] * if_right
        binned.append(weight)
    return binned

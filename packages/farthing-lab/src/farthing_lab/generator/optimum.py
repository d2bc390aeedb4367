"""The cheapest policy for a generator at a given coverage, exactly.

This is the paper's protocol with lambda = 0: adding an answer to the set is free, so a policy is
a rule when to stop, and all answers seen are returned. A question is covered when a right answer
appeared before the stop, or never appears. For every price mu of coverage, backward induction
maximises mu E[coverage] - E[cost]. A history goes on exactly when mu exceeds its own price, the
least E[cost] / E[gain] that a rule for stopping later can offer from there; so every price's
optimum is one threshold on that index (Gittins 1979), and between two neighbouring thresholds the
frontier is the straight line of drawing lots.

Answers matter only through which of them are equal, so a history is the sequence of labels 0, 1,
2, ... (in order of first appearance) that base and guide gave, with the guide's uncertainty bins.
The verdicts follow: the guide says yes exactly when both labels are equal.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from farthing.errors import InputError
from farthing.money import usd_from_nano
from farthing.traces.arrays import NO_ANSWER, FloatArray, IntArray, TraceArrays
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import NOBODY, first_appearance, uncertainty_bin

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


def enumerate_histories(config: GeneratorConfig, rounds: int) -> list[Histories]:
    """Return the histories after rounds 1..`rounds`."""
    levels = [_nothing_yet(config, rounds)]
    for t in range(rounds):
        k = levels[-1].seen
        if ((k * k + 2 * k + 2).sum() * config.uncertainty.bins) > MAX_HISTORIES:
            raise InputError(
                f"the exact optimum over {config.rounds} rounds would need more than "
                f"{MAX_HISTORIES:,} histories in round {t + 1}; take fewer rounds or uncertainty "
                "bins, or compare with the stopping policy fitted on many generated questions, "
                "which comes close to it"
            )
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


def _after_one_more(config: GeneratorConfig, before: Histories, t: int) -> Histories:
    parents, shown, weights = [], [], []
    for k in np.unique(before.seen).tolist():
        rows = np.flatnonzero(before.seen == k)
        for base in range(k + 1):
            said = _base_says(config, before.weight[rows], before.base[rows], k, label=base, t=t)
            known = max(k, base + 1)
            for guide in range(known + 1):
                both = _guide_says(config, said, before.guide[rows], known, base=base, label=guide)
                for drawn, weight in enumerate(_with_bins(config, both, guide)):
                    happens = weight.sum(axis=(1, 2)) > 0
                    told = max(known, guide + 1), base, guide, drawn
                    parents.append(rows[happens])
                    shown.append(np.tile(told, (happens.sum(), 1)))
                    weights.append(weight[happens])
    parent, weight = np.concatenate(parents), np.concatenate(weights)
    seen, base, guide, bins = np.concatenate(shown).T
    key = child_key(config, parent, base, guide, bins)
    order = np.argsort(key)
    return Histories(
        key[order], parent[order], seen[order], base[order], guide[order], weight[order]
    )


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


def _with_bins(config: GeneratorConfig, shown: FloatArray, guide: int) -> list[FloatArray]:
    binned = []
    for if_right, if_wrong in zip(
        config.uncertainty.if_right, config.uncertainty.if_wrong, strict=True
    ):
        weight = shown * if_wrong
        weight[:, :, 1 + guide] = shown[:, :, 1 + guide] * if_right
        binned.append(weight)
    return binned


NOT_PLAYED = -1

ROUNDING = 1e-9
"""Relative difference within which two prices are equal."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """What the best policies cost and cover, and how they decide."""

    cost_nano: FloatArray
    """[V] mean cost of a question at the corners of the frontier, ascending, in nano-dollars."""
    coverage: FloatArray
    """[V] coverage at the corners: the first one stops after round 1, the last one covers all."""
    histories: tuple[Histories, ...]
    """The histories after rounds 1..T-1, after which there is something to decide."""
    price: tuple[FloatArray, ...]
    """For each of `histories`, [H] the price in nano-dollars per unit of coverage from which going
    on pays; +inf where nothing is left to gain."""


@dataclass(frozen=True, eq=False)
class _Stretch:
    """What going on buys, in pieces: each is bought whole, at one price."""

    owner: IntArray
    """[P] index of the history that the piece follows."""
    gain: FloatArray
    """[P] coverage gained."""
    cost: FloatArray
    """[P] money spent."""

    @property
    def price(self) -> FloatArray:
        """[P] cost per unit of coverage; +inf where there is no gain."""
        price: FloatArray = np.full(len(self.gain), np.inf)
        return np.divide(self.cost, self.gain, out=price, where=self.gain > 0)


def frontier(config: GeneratorConfig) -> list[tuple[float, float]]:
    """Return (cost in USD a question, coverage) of the optimal frontier's corners, ascending."""
    best = solve(config)
    return [
        (usd_from_nano(cost), float(covered))
        for cost, covered in zip(best.cost_nano, best.coverage, strict=True)
    ]


def optimal_cost(config: GeneratorConfig, coverage: float) -> float:
    """Return the least mean cost of a question, in USD, of any policy with this coverage."""
    best = solve(config)
    return usd_from_nano(float(np.interp(coverage, best.coverage, best.cost_nano)))


def optimal_scores(
    config: GeneratorConfig, traces: TraceArrays, lot: FloatArray | None = None
) -> FloatArray:
    """Score the generator's own questions so that thresholds replay the optimal policies.

    Questions with the same history have the same score. A lot for each question tells them apart
    and leaves the order of histories as it is: a threshold among them then draws lots, as the
    frontier does between its corners.

    Args:
        config: what made the questions.
        traces: the questions.
        lot: [n] in (0, 1], drawn without a look at the question; none: equal scores stay equal.

    Returns:
        [n, T, 3] base and guide 1 (all answers seen are returned); `next` scores the cheapest
        round's price over the history's own, in [0, 1]: the coverage gained for that money; 0
        after rounds that were not played.
    """
    best = solve(config)
    worth = [config.round_cost_nano.min() / price for price in best.price]
    every = np.concatenate([np.zeros(1), *worth])
    scores = np.ones((*traces.answer.shape[:2], 3))
    scores[:, :, 2] = 0.0
    for t, index in enumerate(_locate(config, best.histories, traces)):
        score = np.where(index == NOT_PLAYED, 0.0, worth[t][index])
        scores[:, t, 2] = score if lot is None else _apart(score, every, lot)
    return scores


def _apart(score: FloatArray, every: FloatArray, lot: FloatArray) -> FloatArray:
    """Lower each score by lot, to anywhere above the next lower one of all that there are.

    Scores that differ by rounding alone are one.
    """
    every = np.unique(every)
    last = np.append(every[1:] > every[:-1] * (1 + ROUNDING), np.ones(1, dtype=bool))
    tops = every[last]
    place = np.searchsorted(tops, score)
    below = tops[np.maximum(place - 1, 0)]
    lowered: FloatArray = below + (tops[place] - below) * lot
    return lowered


@lru_cache(maxsize=16)
def solve(config: GeneratorConfig) -> Optimum:
    """Solve for every price of coverage at once, from the last decision back to the first."""
    levels = enumerate_histories(config, config.rounds - 1)
    later = _Stretch(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    prices: list[FloatArray] = []
    for histories, round_cost in zip(levels[::-1], config.round_cost_nano[:0:-1], strict=True):
        following = _Stretch(
            np.arange(len(histories)),
            first_seen_next(config, histories),
            histories.probability * round_cost,
        )
        bought, left = _cheapest(following, later)
        prices.append(bought.price)
        later = _handed_up(bought, left, histories.parent)
    cost, coverage = _corners(later, float(config.round_cost_nano[0]))
    return Optimum(cost, coverage, tuple(levels), tuple(prices[::-1]))


def _cheapest(following: _Stretch, later: _Stretch) -> tuple[_Stretch, _Stretch]:
    """Join to each history's next round those later pieces that lower its cost per gain.

    The pieces cheaper than the price so far are taken and the price is computed anew, until none
    leaves: Newton's steps on a convex, piecewise linear function, which end at its exact root.
    """
    joined = following
    while True:
        taken = later.price < joined.price[later.owner]
        owner, size = later.owner[taken], len(following.owner)
        better = _Stretch(
            following.owner,
            following.gain + np.bincount(owner, later.gain[taken], size),
            following.cost + np.bincount(owner, later.cost[taken], size),
        )
        if np.array_equal(better.gain, joined.gain):
            rest = _Stretch(later.owner[~taken], later.gain[~taken], later.cost[~taken])
            return joined, rest
        joined = better


def _handed_up(bought: _Stretch, left: _Stretch, parent: IntArray) -> _Stretch:
    """Return all pieces as belonging to the histories one round earlier; drop those of no gain."""
    owner = np.concatenate([bought.owner, left.owner])
    gain, cost = np.concatenate([bought.gain, left.gain]), np.concatenate([bought.cost, left.cost])
    useful = gain > 0
    return _Stretch(parent[owner[useful]], gain[useful], cost[useful])


def _corners(pieces: _Stretch, first_round: float) -> tuple[FloatArray, FloatArray]:
    order = np.argsort(pieces.price, kind="stable")
    gained = np.concatenate([[0.0], pieces.gain[order].cumsum()])
    spent = np.concatenate([[0.0], pieces.cost[order].cumsum()])
    return first_round + spent, 1 - gained[-1] + gained


def _locate(
    config: GeneratorConfig, histories: tuple[Histories, ...], traces: TraceArrays
) -> list[IntArray]:
    """Return, for each round before the last, [n] the index of every question's history.

    `NOT_PLAYED` where the round was not played yet.
    """
    if traces.answer.shape[1:] != (config.rounds, 2) or "uncertainty" not in traces.signals:
        raise InputError(
            f"these traces are not the generator's: it gives {config.rounds} rounds of two answers "
            "and an uncertainty; generate them with the same settings"
        )
    labels = first_appearance(traces.answer.astype(np.int64))
    uncertainty = traces.signals["uncertainty"][:, :, 1]
    played = np.logical_and.accumulate((traces.answer != NO_ANSWER).any(axis=2), axis=1)
    index = np.zeros(len(traces), dtype=np.int64)
    found = []
    for t, level in enumerate(histories):
        rows = np.flatnonzero(played[:, t])
        drawn = uncertainty_bin(config, uncertainty[rows, t])
        key = child_key(config, index[rows], labels[rows, t, 0], labels[rows, t, 1], drawn)
        place = np.minimum(np.searchsorted(level.key, key), len(level) - 1)
        if not np.array_equal(level.key[place], key):
            raise InputError(
                f"these traces show in round {t + 1} what this generator cannot produce; "
                "generate them with the same settings"
            )
        index = np.full(len(traces), NOT_PLAYED)
        index[rows] = place
        found.append(index)
    return found

"""What `LatentDifficulty` believes of one conversation, in plain Python: quick, and remembered.

Conversations begin alike: what was worked out for one serves every other that begins so.
"""

import math
from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from farthing.methods.lookahead.latent_difficulty import LEAST, ROOM, LatentDifficulty
from farthing.traces.arrays import NO_ANSWER

REMEMBERED = 65_536
"""Beginnings of conversations that are remembered."""
UNFOUND = -2
"""Stands for a right answer that was not given yet."""

Round = tuple[int, int, int]
"""Codes of the answers of base and guide, and the bin of the guide's signal."""
Weights = dict[int, list[float]]
"""Of each answer that may be the right one: P(it is, and the level is k | what was said), [K]."""


class Belief:
    """Weighs conversations, one at a time."""

    def __init__(self, model: LatentDifficulty) -> None:
        self._share = model.share.tolist()
        self._base = model.base_first.tolist(), model.base_later.tolist()
        self._guide = model.guide.tolist()
        self._agrees = model.yes_if_wrong.tolist(), model.yes_if_right.tolist()
        self._told = model.if_wrong.tolist(), model.if_right.tolist()
        self._wrong = model.wrong_answers
        self._keeps = model.base_persistence, model.guide_persistence
        self._hazard = model.hazard(np.array([False, True])).tolist()
        self._signal, self._edges = model.signal, model.edges.tolist()
        self._weigh = lru_cache(REMEMBERED)(self._weighed)

    def after(
        self, rounds: int, answers: Sequence[int], signals: Mapping[str, Sequence[float]]
    ) -> list[float]:
        """Return what `LatentDifficulty.outlook` does after so many rounds; zeros before the first.

        Args:
            rounds: how many were held.
            answers: [T * 2] codes of the answers, -1 for none, round by round.
            signals: name to [T * 2], NaN where unknown, likewise.
        """
        if not rounds:
            return [0.0, 0.0]
        told = signals.get(self._signal, (math.nan,) * len(answers))
        bins = map(self._bin, told[1 : 2 * rounds : 2])
        said = tuple(zip(answers[: 2 * rounds : 2], answers[1 : 2 * rounds : 2], bins, strict=True))
        return self.outlook(said, len(answers) // 2 - rounds)

    def outlook(self, said: tuple[Round, ...], left: int) -> list[float]:
        """Return the log-odds that the next round, or any of those left, brings a right answer."""
        base, guide, _ = said[-1]
        unfound = self._weigh(said)[UNFOUND]
        hazard = self._hazard[base == guide]
        soon = sum(w * h for w, h in zip(unfound, hazard, strict=True))
        ever = sum(w * (1 - (1 - h) ** left) for w, h in zip(unfound, hazard, strict=True))
        chances = (min(max(chance, LEAST), 1 - LEAST) for chance in (soon, ever))
        return [math.log(chance / (1 - chance)) for chance in chances]

    def _bin(self, value: float) -> int:
        if math.isnan(value):
            return len(self._edges) + 1
        # signals are recorded in single precision
        return bisect_right(self._edges, array("f", (value,))[0])

    def _weighed(self, said: tuple[Round, ...]) -> Weights:
        """Weigh every answer given so far, and that none of them is right, by Bayes' rule."""
        if not said:
            return {UNFOUND: self._share}
        before = self._weigh(said[:-1])
        known = {answer for *answers, _ in said[:-1] for answer in answers}
        after = {}
        for right in {*before, *said[-1][:2]} - {NO_ANSWER}:
            likely = self._likelihood(said, known, right)
            weights = before.get(right, before[UNFOUND])
            after[right] = [w * p for w, p in zip(weights, likely, strict=True)]
        total = sum(map(sum, after.values()))
        return {right: [w / total for w in weights] for right, weights in after.items()}

    def _likelihood(self, said: tuple[Round, ...], known: set[int], right: int) -> list[float]:
        """Return P(the last round | those before it, level) if this is the right answer, [K]."""
        base, guide, drawn = said[-1]
        last_base, last_guide, _ = said[-2] if len(said) > 1 else (UNFOUND, UNFOUND, 0)
        told = self._told[guide == right][drawn]
        ways = self._ways(base, known, right)
        spoken = [
            _spoken(
                skill if base == right else (1 - skill) * ways / self._wrong,
                self._keeps[0] if len(said) > 1 else 0.0,
                same=base == last_base,
            )
            for skill in self._base[len(said) > 1]
        ]
        agrees = self._agrees[base == right]
        if base == guide:
            return [told * p * yes for p, yes in zip(spoken, agrees, strict=True)]
        ways = self._ways(guide, known | {base}, right)
        keeps = self._keeps[1] if len(said) > 1 and last_guide != base else 0.0
        likely = []
        for p, yes, skill in zip(spoken, agrees, self._guide, strict=True):
            fresh = skill if guide == right else (1 - skill) * ways / (self._wrong - 1)
            if base == right:
                fresh = ways / self._wrong
            likely.append(told * p * (1 - yes) * _spoken(fresh, keeps, same=guide == last_guide))
        return likely

    def _ways(self, answer: int, known: set[int], right: int) -> float:
        """Return how many wrong answers would look like this one."""
        if answer in known:
            return 1.0
        return max(self._wrong - len(known) + (right in known), ROOM)


def _spoken(fresh: float, keeps: float, *, same: bool) -> float:
    return keeps * same + (1 - keeps) * fresh

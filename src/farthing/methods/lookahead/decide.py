"""One decision at a time, in plain Python: what `LookaheadPolicy` decides, in some microseconds.

For one question arrays cost more than they carry. Everything that can be is worked out beforehand;
the numbers of what is known are those of `features/calls.py`, and a test holds the two together.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from farthing.features.calls import COUNTED, VERDICT, names_of_speakers
from farthing.methods.forest import Walker
from farthing.methods.lookahead.belief import Belief
from farthing.methods.lookahead.policy import LEAST, Estimate, LookaheadPolicy
from farthing.process.action_space import laid_out
from farthing.traces.arrays import NO_ANSWER
from farthing.traces.text_signals import OF_QUESTION

REMEMBERED = 4_096
"""Sets of calls of which it is remembered whose they are."""
Calls = tuple[int, ...]


class Choice(NamedTuple):
    """What is bought next, if going on scores at least the threshold."""

    line: int
    """The line of the protocol; -1 where nothing is left to buy."""
    score: float
    """Of going on, in [0, 1]; 1 for the first purchase, which is always made."""


class Decider:
    """Decides about one question at a time, as a policy does about many."""

    def __init__(self, policy: LookaheadPolicy) -> None:
        features = policy.features
        rules = laid_out(policy.rules, features.horizon, len(features.roles))
        self._items = rules.items
        self._cells = rules.cells.tolist()
        self._price = policy.price_nano
        self._estimator = _Estimator(policy.estimate)
        self._reader = Reader(features.roles, features.horizon, features.names)
        self._missing = list(zip(features.names, features.missing, strict=True))
        self._belief = None if policy.latent is None else Belief(policy.latent)
        self._known = lru_cache(REMEMBERED)(self._calls)

    def decide(
        self,
        bought: Sequence[int],
        answers: Sequence[int],
        signals: Mapping[str, Sequence[float]],
    ) -> Choice:
        """Choose the next purchase.

        Args:
            bought: [F] how many items of each line were bought.
            answers: [T * L] which distinct answer each call gave, -1 for none, round by round, as
                in `TraceArrays`. Calls that were not bought are not looked at.
            signals: name to [T * L], NaN where unknown, likewise; what is known of the question
                itself stands in every place.
        """
        found = self._reader.read(self._known(tuple(bought)), answers, signals)
        seen = [found.get(name, instead) for name, instead in self._missing]
        step = sum(bought)
        told = seen
        if self._belief is not None:
            told = self._belief.after(step, answers, signals)
        best, worth = -1, -math.inf
        for line, gain_per_cost in enumerate(self._estimator.worths(seen, told, step)):
            if gain_per_cost > worth and bought[line] < self._items:
                best, worth = line, gain_per_cost
        if not step or best < 0:
            return Choice(best, 1.0 if best >= 0 else 0.0)
        worth = max(worth * self._price, 0.0)
        return Choice(best, worth / (1.0 + worth))

    def _calls(self, bought: tuple[int, ...]) -> Calls:
        lines = zip(self._cells, bought, strict=True)
        return tuple(
            sorted(call for line, count in lines for item in line[:count] for call in item)
        )


class _Estimator:
    """An estimate in plain lists."""

    def __init__(self, estimate: Estimate) -> None:
        self._forest = Walker(estimate.forest)
        self._gain = estimate.gain_weights.tolist()
        self._cost = estimate.cost_weights.tolist()
        self._units = estimate.unit_nano.tolist()
        self._share = estimate.share

    def worths(self, seen: Sequence[float], told: Sequence[float], step: int) -> list[float]:
        """Return gain per nano-dollar of each line; see `Estimate.predict`."""
        found, lines = self._forest.predict(seen), len(self._units)
        if self._share < 1 and step < len(self._gain):
            linear = _logistic(_linear(self._gain[step], told)), _linear(self._cost[step], told)
            found[0] = self._share * found[0] + (1 - self._share) * linear[0]
            found[1] = self._share * found[1] + (1 - self._share) * max(linear[1], 0.0)
        return [
            gain / (max(cost, LEAST) * unit)
            for gain, cost, unit in zip(found, found[lines:], self._units, strict=False)
        ]


def _linear(weights: Sequence[float], seen: Sequence[float]) -> float:
    total: float = sum(map(mul, weights, seen))
    return total + weights[-1]


def _logistic(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(min(-odds, 700.0)))


COUNTS = ("calls", "backs", "no_answer", "votes", "distinct")
"""What is counted for each role, and so is no signal."""


class _Signal(NamedTuple):
    """What the numbers of one signal of one speaker are called."""

    mean: str
    last: str
    spread: str
    counted: bool
    """Whether logarithms are taken."""


class _Speaker(NamedTuple):
    """What the numbers of one of those who answer are called."""

    calls: str
    backs: str
    no_answer: str
    votes: str
    distinct: str
    signals: list[tuple[str, _Signal]]


class _Part(NamedTuple):
    """What one of those who answer says in a set of calls."""

    speaker: _Speaker
    calls: Calls
    compared: Calls
    """Those whose verdict is known: where the round's base was asked too."""


class Reader:
    """Reads the numbers of `farthing.features.calls.columns` off one question."""

    def __init__(self, roles: tuple[str, ...], horizon: int, names: Collection[str]) -> None:
        speakers, owner = names_of_speakers(roles, horizon)
        self._owner = owner.tolist()
        self._alone = len(self._owner) == len(speakers)
        self._roles = len(roles)
        self._base = roles.index("base") if "base" in roles else None
        spoken = {name.removeprefix("spread ").removeprefix("last ") for name in names}
        signals = {name.partition("[")[0] for name in spoken if "[" in name}.difference(COUNTS)
        self._speakers = [_speaker(name, sorted(signals)) for name in speakers]
        self._unasked = {
            count: 0.0
            for speaker in self._speakers
            for count in (speaker.calls, speaker.no_answer, speaker.votes, speaker.distinct)
        }
        self._of_question = [signal for signal in OF_QUESTION if signal in spoken]
        self._weighs = any(name.startswith(("confidence ", "best ")) for name in names)
        self._parts = lru_cache(REMEMBERED)(self._divided)

    def read(
        self, known: Calls, answers: Sequence[int], signals: Mapping[str, Sequence[float]]
    ) -> dict[str, float]:
        """Return the numbers by name, without those that no known call tells."""
        votes: dict[int, int] = {}
        for call in known:
            answer = answers[call]
            if answer != NO_ANSWER:
                votes[answer] = votes.get(answer, 0) + 1
        leader = max(votes, key=votes.__getitem__, default=NO_ANSWER)
        found = self._unasked | _votes(len(known), votes, leader)
        for speaker, calls, compared in self._parts(known):
            self._of_speaker(found, speaker, [answers[call] for call in calls], leader)
            for signal, names in speaker.signals:
                if signal in signals:
                    told = compared if signal == VERDICT else calls
                    _of_signal(found, names, told, signals[signal])
        said = {signal: signals[signal][0] for signal in self._of_question if signal in signals}
        found |= {signal: value for signal, value in said.items() if not math.isnan(value)}
        if self._weighs and "confidence" in signals:
            _weigh(found, known, answers, signals["confidence"], leader)
        return found

    def _divided(self, known: Calls) -> list[_Part]:
        found = []
        for place, speaker in enumerate(self._speakers):
            calls = compared = tuple(call for call in known if self._owner[call] == place)
            if self._base is not None:
                base = self._base
                compared = tuple(c for c in calls if c - c % self._roles + base in known)
            if calls:
                found.append(_Part(speaker, calls, compared))
        return found

    def _of_speaker(
        self, found: dict[str, float], speaker: _Speaker, said: Sequence[int], leader: int
    ) -> None:
        made = len(said)
        given = [answer for answer in said if answer != NO_ANSWER]
        found[speaker.calls] = made
        found[speaker.backs] = given.count(leader) / made
        found[speaker.no_answer] = made - len(given)
        if not self._alone:
            found[speaker.votes] = max(map(given.count, given), default=0.0)
            found[speaker.distinct] = len(set(given))


def _speaker(name: str, signals: Sequence[str]) -> _Speaker:
    calls, backs, no_answer, votes, distinct = (f"{count}[{name}]" for count in COUNTS)
    own = [(signal, f"{signal}[{name}]") for signal in signals]
    told = [(s, _Signal(n, f"last {n}", f"spread {n}", s in COUNTED)) for s, n in own]
    return _Speaker(calls, backs, no_answer, votes, distinct, told)


def _votes(made: int, votes: Mapping[int, int], leader: int) -> dict[str, float]:
    answers, first = sum(votes.values()), votes.get(leader, 0)
    return {
        "calls": made,
        "answers": answers,
        "distinct": len(votes),
        "votes": first,
        "share": first / max(answers, 1),
        "runner_up": max((n for a, n in votes.items() if a != leader), default=0),
    }


def _of_signal(
    found: dict[str, float], names: _Signal, calls: Sequence[int], values: Sequence[float]
) -> None:
    own = [values[calls[0]]] if len(calls) == 1 else [values[call] for call in calls]
    if math.isnan(sum(own)):
        own = [value for value in own if not math.isnan(value)]
    if not own:
        return
    if names.counted:
        own = list(map(math.log1p, own))
    found[names.last] = own[-1]
    if len(own) == 1:
        found[names.mean] = own[0]
        return
    found[names.mean] = sum(own) / len(own)
    found[names.spread] = max(own) - min(own)


def _weigh(
    found: dict[str, float],
    known: Sequence[int],
    answers: Sequence[int],
    confidence: Sequence[float],
    leader: int,
) -> None:
    """Confidence behind the leading answer and behind the others."""
    for name, wanted in (("for", True), ("against", False)):
        weights = [
            confidence[call]
            for call in known
            if answers[call] != NO_ANSWER and (answers[call] == leader) == wanted
        ]
        weights = [weight for weight in weights if weight == weight]  # noqa: PLR0124 - not NaN
        found[f"confidence {name}"] = sum(weights)
        found[f"best confidence {name}"] = max(weights, default=0.0)

"""One answer and how sure it is: goes on as another policy does until an answer is sure enough.

A policy that scores every answer alike cannot tell which to give and which to hold back. Here each
answer of the latest purchase scores the probability that it is right, estimated from all that was
paid for so far, and the likeliest is returned where going on ends. A threshold then does one thing:
it withholds answers that are less sure. So the scores hold for sets that may be empty alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from farthing.features.calls import LEFT_OUT, VERDICT, speakers, with_its_base
from farthing.methods import cards
from farthing.methods.forest import Forest
from farthing.methods.lookahead.policy import FOREST
from farthing.process.action_space import SpaceName, action_space
from farthing.process.base import Budget, Decision, Policy, State
from farthing.process.play import Followed, with_next
from farthing.process.replay import likeliest_counts_as_one, paths
from farthing.process.replayed import Priced, followed
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.text_signals import OF_QUESTION

Answers = NDArray[np.int16]
LEAST = 1e-6
"""No answer scores less: a threshold of 0 alone returns what is masked."""


@dataclass(frozen=True)
class Walk:
    """How another policy plays some questions, if it goes on for ever."""

    along: Followed
    reach: FloatArray
    """[n, S] the largest threshold at which it makes each purchase."""
    known: BoolArray
    """[n, S, T * L] which calls are known after each purchase."""


def walk(policy: Policy, traces: TraceArrays, empty: str, budget: Budget | None = None) -> Walk:
    """Play a policy's every purchase.

    Args:
        policy: any policy that acts through a threshold.
        traces: the questions, [n, T, L].
        empty: the mode of `replay.paths` that it was trained for.
        budget: what each question may cost.
    """
    along = followed(policy, traces, budget)
    bought = None if budget is None else along.bought
    reach = paths(along.scores, along.traces, empty, bought).reach
    return Walk(along, reach, along.known(traces.horizon * traces.n_roles))


@dataclass(frozen=True)
class Evidence:
    """How to read what speaks for an answer and what against it."""

    signals: tuple[str, ...]
    """[G] recorded numbers of calls."""
    mean: FloatArray
    """[G, K] their means, speaker by speaker."""
    scale: FloatArray
    """[G, K] their standard deviations, likewise."""

    @classmethod
    def fit(cls, train: TraceArrays) -> Self:
        """Take means and deviations from training questions; a signal that is constant is out."""
        names, speaker = speakers(train)
        found = {}
        for name in sorted(set(train.signals).difference(LEFT_OUT, OF_QUESTION)):
            values = train.signals[name].reshape(len(train), -1).astype(np.float64)
            own = [values[:, speaker == k] for k in range(len(names))]
            known = [of[~np.isnan(of)] for of in own]
            mean = np.array([of.mean() if of.size else 0.0 for of in known])
            scale = np.array([of.std() if of.size else 0.0 for of in known])
            if scale.any():
                found[name] = mean, np.where(scale > 0, scale, 1.0)
        shape = (len(found), len(names))
        means, scales = (np.array([pair[i] for pair in found.values()]) for i in range(2))
        return cls(tuple(found), means.reshape(shape), scales.reshape(shape))

    def of(self, traces: TraceArrays, seen: BoolArray, candidate: Answers) -> FloatArray:
        """Return what is known of each candidate answer, [n, S, U, F].

        Each speaker's calls that gave it and that gave another, its share of all, its lead over the
        next, how many other answers there are, and each signal, summed over the calls for it and
        over those against it, in deviations from its speaker's mean.

        Args:
            traces: the questions, [n, T, L].
            seen: [n, S, T * L] which calls are known after each purchase.
            candidate: [n, S, U] answers.
        """
        names, speaker = speakers(traces)
        answer = traces.answer.reshape(len(traces), -1)
        given = (seen & (answer != NO_ANSWER)[:, None])[:, :, None]
        backs = given & (answer[:, None, None] == candidate[..., None])
        others = given & ~backs
        same = (answer[:, :, None] == answer[:, None]).astype(np.float64)
        crowd = others.astype(np.float64) @ same[:, None] * others  # votes of each other answer
        votes, rest = backs.sum(axis=3), others.sum(axis=3)
        columns = [
            *((backs & (speaker == k)).sum(axis=3) for k in range(len(names))),
            *((others & (speaker == k)).sum(axis=3) for k in range(len(names))),
            votes / np.maximum(votes + rest, 1),
            votes - crowd.max(axis=3),
            (others / np.maximum(crowd, 1.0)).sum(axis=3),
        ]
        for g, signal in enumerate(self.signals):
            value = self._deviations(traces, g, signal, speaker)[:, None, None]
            if signal == VERDICT:
                value = value * with_its_base(traces.roles, seen)[:, :, None]
            columns += [(value * backs).sum(axis=3), (value * others).sum(axis=3)]
        return np.stack(columns, axis=3).astype(np.float64)

    def _deviations(
        self, traces: TraceArrays, g: int, signal: str, speaker: IntArray
    ) -> FloatArray:
        if signal not in traces.signals:
            return np.zeros((len(traces), len(speaker)))
        values = traces.signals[signal].reshape(len(traces), -1)
        known: FloatArray = (values - self.mean[g, speaker]) / self.scale[g, speaker]
        return np.nan_to_num(known)


@dataclass(frozen=True)
class Confidence:
    """A fitted P(an answer is right | what is known)."""

    evidence: Evidence
    weights: FloatArray
    """[F + 1] log-odds, the constant last."""
    forest: Forest
    """One output: the same probability."""

    def of(self, known: FloatArray) -> FloatArray:
        """Return the probability by evidence [R, F], [R]: the mean of both estimates.

        The one needs little data, the other sees what depends on what.
        """
        odds = (known * self.weights[:-1]).sum(axis=1) + self.weights[-1]
        linear = 1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0)))
        mean: FloatArray = (linear + self.forest.predict(known)[:, 0]) / 2.0
        return np.maximum(mean, LEAST)

    def of_each(self, known: FloatArray) -> FloatArray:
        """Return the probability by evidence [n, S, U, F], [n, S, U]."""
        return self.of(known.reshape(-1, known.shape[-1])).reshape(known.shape[:-1])

    def __call__(self, traces: TraceArrays, walked: Walk) -> FloatArray:
        """Return the probability of each answer after the purchase that brought it, [n, S, U].

        0 where there is no answer.
        """
        given = walked.along.traces.answer != NO_ANSWER
        sure = np.zeros(given.shape)
        sure[given] = self.of(
            self.evidence.of(traces, walked.known, walked.along.traces.answer)[given]
        )
        return sure


@dataclass(frozen=True)
class SelectivePolicy:
    """Buys as another policy does at one threshold until an answer is sure enough."""

    inner: Policy
    empty: str
    """The mode of `replay.paths` that the other policy was trained for."""
    until: float
    """The other policy's threshold."""
    enough: float
    """How sure an answer must be for no more to be bought."""
    confidence: Confidence
    stochastic: bool = False
    parameters: ClassVar[None] = None

    @property
    def space(self) -> SpaceName:
        """The action space that it buys in."""
        return self.inner.space

    def decide(self, state: State) -> Decision:
        """Go on as the other policy would, unless an answer is sure enough already."""
        theirs = self.inner.decide(state)
        if not state.turn:
            return theirs
        answer = np.take_along_axis(state.recorded.answer.reshape(len(state), -1), state.latest, 1)
        known = self.confidence.evidence.of(state.recorded, state.known[:, None], answer[:, None])
        sure = np.where(answer != NO_ANSWER, self.confidence.of_each(known)[:, 0], 0.0)
        best = sure.max(axis=1)
        goes_on = (_onwards(with_next(theirs), self.empty) >= self.until) & (best < self.enough)
        return Decision(theirs.line, goes_on.astype(np.float64), _returned(sure, goes_on))

    def followed(self, traces: TraceArrays, budget: Budget | None = None) -> Followed:
        """Follow the other policy's order, and weigh the answers of all questions at once."""
        walked = walk(self.inner, traces, self.empty, budget)
        sure = self.confidence(traces, walked)
        theirs = walked.along.scores.copy()
        theirs[:, :-1, -1][~walked.along.bought[:, 1:]] = -1.0
        theirs[:, -1, -1] = -1.0
        goes_on = (_onwards(theirs, self.empty) >= self.until) & (sure.max(axis=2) < self.enough)
        possible = np.where(theirs[:, :, -1] < 0, -1.0, goes_on)
        scores = np.concatenate([_returned(sure, goes_on), possible[:, :, None]], axis=2)
        return replace(walked.along, scores=scores)

    def decision_cost_nano(self, traces: TraceArrays) -> IntArray:
        """Return what deciding costs the other policy, [n, S] in nano-dollars."""
        if isinstance(self.inner, Priced):
            return self.inner.decision_cost_nano(traces)
        steps = action_space(self.space, traces.horizon, traces.n_roles).steps
        return np.zeros((len(traces), steps), dtype=np.int64)

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the settings that a bundle keeps."""
        arrays, settings = self.inner.to_state()  # type: ignore[attr-defined]
        evidence = self.confidence.evidence
        own = {
            "weights": self.confidence.weights,
            "mean": evidence.mean,
            "scale": evidence.scale,
            **{name: getattr(self.confidence.forest, name) for name in FOREST},
        }
        inner = {f"inner.{name}": values for name, values in arrays.items()}
        return own | inner, {
            "inner": {
                "kind": cards.name_of(self.inner),
                "settings": settings,
            },
            "features": settings.get("features"),
            "empty": self.empty,
            "until": self.until,
            "enough": self.enough,
            "signals": list(evidence.signals),
            "depth": self.confidence.forest.depth,
        }

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Rebuild the policy from what `to_state` returned."""
        of = settings["inner"]
        theirs = {
            name.removeprefix("inner."): values
            for name, values in arrays.items()
            if name.startswith("inner.")
        }
        evidence = Evidence(tuple(settings["signals"]), arrays["mean"], arrays["scale"])
        forest = Forest(depth=int(settings["depth"]), **{name: arrays[name] for name in FOREST})
        return cls(
            cards.policy_class(of["kind"]).from_state(theirs, of["settings"]),
            settings["empty"],
            float(settings["until"]),
            float(settings["enough"]),
            Confidence(evidence, arrays["weights"], forest),
        )


def _onwards(scores: FloatArray, empty: str) -> FloatArray:
    """Return the largest threshold at which going on is among the actions taken, [...]."""
    found: FloatArray = likeliest_counts_as_one(scores) if empty == "argmax" else scores
    return found[..., -1]


def _returned(sure: FloatArray, goes_on: BoolArray) -> FloatArray:
    """Return the score of each answer, [..., U]: of the likeliest alone, where it ends."""
    likeliest = sure.argmax(axis=-1)[..., None] == np.arange(sure.shape[-1])
    scores: FloatArray = np.where(likeliest & ~goes_on[..., None], sure, 0.0)
    return scores


def as_trained(policy: Policy, empty: str) -> tuple[Policy, str]:
    """Return a policy as it was before it was made to say how sure it is, and its mode."""
    if isinstance(policy, SelectivePolicy):
        return policy.inner, policy.empty
    return policy, empty

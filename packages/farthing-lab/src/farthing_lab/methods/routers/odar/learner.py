"""ODAR: a difficulty decides between one call, two, and six; free energy, which answer is given.

The fast model answers. Where d is below a first edge, that is all; below a second one the slow
model checks it; beyond, up to six calls are made in all. The answer of least free energy is given.

Both edges follow from one threshold kappa: the first is kappa, and the second has `ODDS` times its
odds, so that kappa = 0.3 has the edges 0.3 and 0.7. The same question is never asked less at a
lower threshold, so that its calls are nested, and calibration is exact. The edge 0.3 is published;
the second edge, and how the two move together, are ours.

The free energy of a sample says how unlikely it was, and how unevenly its tokens were:

    F = -sum log p + lambda Var[-log p]

over its tokens. The first term is its surprisal; with lambda = 0 the sample of least free energy is
the likeliest one. The second, its *varentropy*, is large where a model was sure of most tokens and
guessed at a few.

Source: Ma et al. 2026, arXiv:2602.23681 (the abstract; the population variance is our reading).

How hard a question is, is learned: how likely the answer so far is wrong, by what is seen so far.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from farthing.errors import TooFewTracesError
from farthing.features.calls import CallFeatures
from farthing.methods.base import Fitted, Learner, Method, Progress
from farthing.methods.lookahead.learner import where_independent
from farthing.methods.scorer import SIGNALS, Scorers, fit_to, logistic, on_scale
from farthing.methods.serialization import finite, rebuilt, state_of, under
from farthing.process.action_space import ActionSpace, SpaceName, items_of, recorded_space
from farthing.process.base import NOTHING, Decision, State
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays
from farthing.traces.token_moments import SURPRISAL, VARENTROPY, token_moments
from farthing_lab.features.question import HASHED, word_vectors


def free_energy(logprob: FloatArray, token: BoolArray, weight: float) -> FloatArray:
    """Return each sample's free energy in nats, [S].

    >>> even, odd = [-1.0, -1.0], [-1.75, -0.25]
    >>> free_energy(np.log(np.exp([even, odd])), np.ones((2, 2), bool), weight=1.0)
    array([2.    , 2.5625])

    Args:
        logprob: [S, N] natural logarithm of each token's probability, at most 0.
        token: [S, N] which places hold a token.
        weight: lambda, at least 0: what a squared nat of varentropy counts in nats.
    """
    surprisal, varentropy = token_moments(logprob, token)
    return surprisal + weight * varentropy


def fused(logprob: FloatArray, token: BoolArray, weight: float) -> int:
    """Return the sample of least free energy, of equals the first.

    Args:
        logprob: [S, N], S at least 1.
        token: [S, N]
        weight: lambda.
    """
    return int(free_energy(logprob, token, weight).argmin())


def of_votes(p_right: FloatArray, code: IntArray, known: BoolArray, chance: float) -> FloatArray:
    """Return the free energy of each answer as minus the logarithm of its probability, [R, C].

    Where token probabilities were not recorded (ours). Calls are taken to err independently: one
    that is right with probability p says the right answer with p, and each of 1 / chance wrong ones
    with (1 - p) chance. All answers are equally likely before anybody spoke; Bayes' rule gives
    those that were said their probabilities, beside any that nobody said. A call without an answer
    says nothing. So one call's answer is right with its p.

    >>> p, code = np.array([[0.6, 0.9]]), np.array([[7, 7]])
    >>> np.exp(-of_votes(p, code, np.array([[True, False]]), chance=0.25)).round(3)
    array([[0.6, 0. ]])

    Args:
        p_right: [R, C] how likely each call is right, in (0, 1).
        code: [R, C] which answer each call gave; negative for none.
        known: [R, C] which calls were made.
        chance: how often two wrong answers are the same, in (0, 1].
    """
    said = known & (code >= 0)
    same = (code[:, :, None] == code[:, None, :]) & said[:, None, :]
    other = said[:, None, :] & ~same
    backed = np.where(same, np.log(p_right)[:, None, :], 0.0).sum(axis=2)
    denied = np.where(other, np.log((1 - p_right) * chance)[:, None, :], 0.0).sum(axis=2)
    log_odds = np.where(said, backed + denied, -np.inf)
    # each answer once, at its first call; then those that nobody said
    first = said & ~np.tril(same, -1).any(axis=2)
    nobody = np.where(said, np.log((1 - p_right) * chance), 0.0).sum(axis=1, keepdims=True)
    unsaid = np.maximum(1 + 1 / chance - first.sum(axis=1, keepdims=True), 0.0)
    top = np.maximum(log_odds.max(axis=1, keepdims=True), nobody)
    total = np.where(first, np.exp(log_odds - top), 0.0).sum(axis=1, keepdims=True)
    total = total + unsaid * np.exp(nobody - top)
    energy: FloatArray = top + np.log(total) - log_odds
    return np.maximum(energy, 0.0)


EDGE = 0.3
"""The published edge: questions that are easier are answered by one call."""
SECOND_EDGE = 0.7
"""Where the threshold is the published edge, harder questions than this get six calls (ours)."""
ODDS = (SECOND_EDGE / (1 - SECOND_EDGE)) / (EDGE / (1 - EDGE))
MOST = 6
"""Calls of a hard question."""
NEARLY = 2.0**-20
"""How far below 1 the score of an answer can lie, and a difficulty has to."""


def hardest(difficulty: FloatArray) -> FloatArray:
    """Return the largest threshold at which a question gets six calls, for each difficulty.

    >>> hardest(np.array([0.0, 0.3, 0.7, 1.0])).round(4)
    array([0.   , 0.073, 0.3  , 1.   ])
    """
    at = difficulty / (difficulty + ODDS * (1 - difficulty))
    rounded: FloatArray = at.round(12)  # so that 0.7 gives 0.3 and not its neighbour
    return rounded


def calls_at(difficulty: FloatArray, kappa: float) -> IntArray:
    """Return how many calls questions get at a threshold, [n]: 1, 2 or 6.

    >>> calls_at(np.array([0.29, 0.3, 0.69, 0.71]), 0.3)
    array([1, 2, 2, 6])
    """
    calls = np.where(difficulty >= kappa, 2, 1)
    return np.where(hardest(difficulty) >= kappa, MOST, calls)


@dataclass(frozen=True)
class Difficulty:
    """How likely the answer so far is wrong, by logistic regression."""

    mean: FloatArray
    """[F] of the call features."""
    scale: FloatArray
    """[F]"""
    weight: FloatArray
    """[F + 512 + 1] of the call features, the question's hashed words and a constant."""

    def of(self, seen: FloatArray, words: FloatArray | None) -> FloatArray:
        """Return it for each question, [n], from 0 to just below 1.

        Args:
            seen: [n, F] call features.
            words: [n, 512] the questions' words; None where no text is known.
        """
        width = len(self.mean)
        logit = ((seen - self.mean) / self.scale * self.weight[:width]).sum(axis=1)
        if words is not None:
            logit = logit + np.einsum("nd,d->n", words, self.weight[width:-1])
        likely: FloatArray = 1 / (1 + np.exp(-np.clip(logit + self.weight[-1], -500, 500)))
        return np.minimum(likely, 1 - 2 * NEARLY)


@dataclass(frozen=True)
class Fusion:
    """Which answer is given: the one of least free energy."""

    scorers: Scorers
    """How likely each speaker's call is right, by what was recorded beside it."""
    chance: float
    """How often two wrong answers are the same."""
    weight: float
    """lambda of the free energy."""

    def energy(self, traces: TraceArrays, known: BoolArray) -> FloatArray:
        """Return the free energy of the answers of known calls, [n, T * L]; inf elsewhere.

        Where a call's surprisal and varentropy are recorded, that of its tokens; for the whole
        question, where one of its known calls lacks them, that of votes.

        Args:
            traces: the questions; only known calls are read.
            known: [n, T * L]
        """
        n = len(traces)
        code = traces.answer.reshape(n, -1).astype(np.int64)
        by_votes = of_votes(likely_right(self.scorers, traces), code, known, self.chance)
        names = (SURPRISAL, VARENTROPY)
        if not all(name in traces.signals for name in names):
            return by_votes
        told, spread = (traces.signals[name].reshape(n, -1).astype(np.float64) for name in names)
        by_tokens = told + self.weight * spread
        answered = known & (code >= 0)
        complete = ~(np.isnan(by_tokens) & answered).any(axis=1, keepdims=True)
        of_tokens = np.where(answered, np.nan_to_num(by_tokens), np.inf)
        return np.where(complete, of_tokens, by_votes)


def by_speaker(traces: TraceArrays, values: NDArray[Any]) -> NDArray[Any]:
    """Arrange values of calls, [n, T, L], as [R, K] for K speakers: roles, or rounds if one."""
    return values.reshape(-1, traces.n_roles if traces.n_roles > 1 else traces.horizon)


def signals_by_speaker(traces: TraceArrays, names: tuple[str, ...]) -> FloatArray:
    """Return recorded numbers on a scale that suits a logit, [R, F, K]; NaN where unknown."""
    found = np.full((*by_speaker(traces, traces.answer).shape, len(names)), np.nan)
    for place, name in enumerate(names):
        if name in traces.signals:
            found[..., place] = on_scale(name, by_speaker(traces, traces.signals[name]))
    return found.swapaxes(1, 2)


def likely_right(scorers: Scorers, traces: TraceArrays) -> FloatArray:
    """Return how likely each call is right, [n, T * L], within (0, 1)."""
    p = scorers.p_of(signals_by_speaker(traces, scorers.names))
    return np.clip(p, 0.001, 0.999).reshape(len(traces), -1)


@dataclass(frozen=True)
class OdarPolicy:
    """A fixed order of calls; the difficulty of the question says after how many it ends."""

    features: CallFeatures
    order: IntArray
    """[S] the line of each call, from the first on."""
    difficulty: Difficulty
    """What the first call and the text say."""
    again: Difficulty | None
    """What the first two calls and the text say, where difficulty is estimated anew (ours)."""
    fusion: Fusion
    stochastic: bool = False
    space: ClassVar[SpaceName] = "calls"
    parameters: ClassVar[None] = None

    def decide(self, state: State) -> Decision:
        """Go on with d after the first call, with `hardest(d)` until the sixth, then no more.

        An answer scores nearly 1, whichever it is, so that a threshold is about difficulty alone;
        by how much less says which single answer is given.
        """
        line = self._next(state)
        if not state.turn:
            return Decision(line, np.ones(len(state)), np.ones((len(state), 1)))
        made = state.bought.sum(axis=1)
        go_on = np.zeros(len(state))
        early = made == 1
        if early.any():
            go_on[early] = self._of(state, 1)[early]
        late = (made > 1) & (made < MOST)
        if late.any():
            go_on[late] = hardest(self._of(state, 1 if self.again is None else 2))[late]
        energy = self.fusion.energy(state.recorded, state.known)
        latest = np.take_along_axis(energy, state.latest, axis=1)
        return Decision(line, go_on, 1.0 - NEARLY * (1.0 - 1.0 / (1.0 + latest)))

    def _of(self, state: State, calls: int) -> FloatArray:
        """Return the difficulty after so many calls, [n], whatever was learned later."""
        then = State(
            state.recorded, state.space, state.offered, state.history[:, :calls], state.budget
        )
        seen = self.features.look(state.recorded, np.arange(len(state)), then.known)
        by = self.again if self.again is not None and calls > 1 else self.difficulty
        return by.of(seen, words(state.recorded))

    def _next(self, state: State) -> IntArray:
        """Return the first line of the order whose next item is due and can be bought, [n]."""
        line = np.full(len(state), NOTHING)
        count = np.zeros(state.space.lines, dtype=np.int64)
        for of in self.order.tolist():
            due = (line == NOTHING) & (state.bought[:, of] <= count[of]) & state.can_buy[:, of]
            line[due] = of
            count[of] += 1
        return line

    def to_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays: dict[str, NDArray[Any]] = {"order": self.order}
        settings: dict[str, Any] = {"features": msgspec.to_builtins(self.features)}
        parts = {"difficulty": self.difficulty, "again": self.again, "fusion": self.fusion}
        for name, part in parts.items():
            if part is not None:
                found, settings[name] = state_of(part)
                arrays |= {f"{name}.{key}": finite(values) for key, values in found.items()}
        return arrays, settings

    @classmethod
    def from_state(cls, arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> Self:

        def part(kind: type[Any], name: str) -> Any:
            return rebuilt(kind, under(f"{name}.", arrays), settings[name])

        return cls(
            msgspec.convert(settings["features"], CallFeatures),
            arrays["order"],
            part(Difficulty, "difficulty"),
            part(Difficulty, "again") if "again" in settings else None,
            part(Fusion, "fusion"),
        )


def words(traces: TraceArrays) -> FloatArray | None:
    """Return the questions' hashed words, [n, 512]; None where no text is known."""
    if traces.question is None or not any(traces.question):
        return None
    return word_vectors(traces.question.tolist())


STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Inverse strengths of the L2 penalty that cross-validation chooses from."""
FOLDS = 5
TEXT = 4.0
"""What a question's words are multiplied by: their vector has length 1, a standardised feature
spreads by 1."""
LEAST_CHANCE = 0.02
"""The least probability that two wrong answers are taken to be the same."""


@dataclass(frozen=True)
class OdarLearner:
    """The fast line is the cheapest, the slow one that which is right most often."""

    recheck: bool = False
    """Whether difficulty is estimated anew once the check has answered (ours)."""
    weight: float = 1.0
    """lambda of the free energy (ours)."""

    def fit(self, train: TraceArrays, alpha: Fraction, seed: int, progress: Progress) -> Fitted:
        del alpha  # the threshold depends on it, and the difficulty does not
        if len(train) < 2:
            raise TooFewTracesError(f"{len(train)} question to train on; odar needs 2 or more")
        order = order_of_calls(train, recorded_space("calls", train))
        fusion = _fit_fusion(train, self.weight)
        steps = 2 if self.recheck else 1
        fitted = []
        for calls in range(1, steps + 1):
            state = _after(train, order, calls)
            features = CallFeatures.fit(train, np.arange(len(train)), state.known)
            wrong = ~_answered_rightly(fusion, state)
            fitted.append((features, state, wrong))
            progress.update(calls, steps, {"wrong": float(wrong.mean())})
        features = fitted[-1][0]
        found = [_fit_difficulty(features, *one[1:], seed) for one in fitted]
        again = found[1] if self.recheck else None
        return Fitted(OdarPolicy(features, order, found[0], again, fusion))


def order_of_calls(train: TraceArrays, space: ActionSpace) -> IntArray:
    """Return the line of every call, [S]: the fast line's first, up to five slow ones, the rest.

    The rest stands by how often a line is right. Where there is one line, it is both.
    """
    cost = train.cost_nano.reshape(len(train), -1)[:, space.cells].mean(axis=(0, 2, 3))
    right = train.correct.reshape(len(train), -1)[:, space.cells].mean(axis=(0, 2, 3))
    fast, slow = int(cost.argmin()), int(np.lexsort((cost, -right))[0])
    left = np.full(space.lines, space.items)
    left[fast] -= 1
    checks = min(MOST - 1, int(left[slow]))
    left[slow] -= checks
    rest = [int(line) for line in np.lexsort((cost, -right)) for _ in range(left[line])]
    return np.array([fast, *[slow] * checks, *rest], dtype=np.int64)


def _after(train: TraceArrays, order: IntArray, calls: int) -> State:
    """Return the questions after the first calls of an order, which may be all there are."""
    space = recorded_space("calls", train)
    nothing = np.zeros((len(train), 0), dtype=np.int64)
    state = State(train, space, items_of(train, space).offered, nothing)
    for line in order[:calls]:
        state = state.buying(np.full(len(train), line))
    return state


def _answered_rightly(fusion: Fusion, state: State) -> BoolArray:
    """Return whether the answer of least free energy is right, [n]."""
    energy = fusion.energy(state.recorded, state.known)
    right = state.recorded.correct.reshape(len(state), -1)
    best = energy.argmin(axis=1)
    found: BoolArray = right[np.arange(len(state)), best] & np.isfinite(energy.min(axis=1))
    return found


def _fit_fusion(train: TraceArrays, weight: float) -> Fusion:
    names = tuple(name for name in SIGNALS if name in train.signals)
    made = by_speaker(train, train.answer != NO_ANSWER)
    right = by_speaker(train, train.correct)
    scorers = fit_to(names, signals_by_speaker(train, names), made, right)
    return Fusion(scorers, _chance(train), weight)


def _chance(train: TraceArrays) -> float:
    """Return how often two wrong answers to one question are the same, by Laplace's rule."""
    code = train.answer.reshape(len(train), -1)
    wrong = (code != NO_ANSWER) & ~train.correct.reshape(len(train), -1)
    both = np.triu(wrong[:, :, None] & wrong[:, None, :], 1)
    same = both & (code[:, :, None] == code[:, None, :])
    return float(np.clip((same.sum() + 1) / (both.sum() + 2), LEAST_CHANCE, 1.0))


def _fit_difficulty(
    features: CallFeatures, state: State, wrong: BoolArray, seed: int
) -> Difficulty:
    """Fit P(the answer so far is wrong | what is seen); ungraded answers count as wrong."""
    n = len(wrong)
    seen = features.look(state.recorded, np.arange(n), state.known)
    mean, spread = seen.mean(axis=0), seen.std(axis=0)
    scale = np.where(spread > 1e-9, spread, 1.0)
    text = words(state.recorded)
    text = np.zeros((n, 0)) if text is None else TEXT * text
    columns = np.concatenate([(seen - mean) / scale, text], axis=1)
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    losses = [
        sum(_held_out_loss(columns, wrong, fold == k, strength) for k in range(FOLDS))
        for strength in STRENGTHS
    ]
    found = logistic(columns, wrong, STRENGTHS[int(np.argmin(losses))])
    weight = np.zeros(len(mean) + HASHED + 1)
    weight[: len(mean)] = found[: len(mean)]
    weight[len(mean) : len(mean) + text.shape[1]] = TEXT * found[len(mean) : -1]
    weight[-1] = found[-1]
    return Difficulty(mean, scale, weight)


def _held_out_loss(seen: FloatArray, wrong: BoolArray, out: BoolArray, strength: float) -> float:
    if not out.any() or out.all():
        return 0.0
    found = logistic(seen[~out], wrong[~out], strength)
    logit = (seen[out] * found[:-1]).sum(axis=1) + found[-1]
    return float(np.logaddexp(0.0, np.where(wrong[out], -logit, logit)).sum())


def _card(name: str, label: str, meaning: str, learner: Learner, place: int) -> Method:
    return Method(
        name=name,
        label=label,
        meaning=meaning,
        paper="2602.23681",
        policy=OdarPolicy,
        learner=learner,
        action_spaces=("calls",),
        needs=("independent calls",),
        imports=("sklearn.linear_model",),
        varies_with=frozenset({"seed"}),
        variants=where_independent(name, label, learner),
        place=place,
    )


ODAR = _card(
    "odar",
    "ODAR",
    "How hard a question looks decides between one call, a second that checks it, and six",
    OdarLearner(),
    73,
)
ODAR_RECHECK = _card(
    "odar-recheck",
    "ODAR, looking again",
    "As odar, but how hard a question is, is estimated anew once the check has answered",
    OdarLearner(recheck=True),
    74,
)

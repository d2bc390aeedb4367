"""A cascade that decides by all that is seen: who agrees, who is silent, how sure and how long.

A row of up to three models is asked in order of price. After each reply the net loss of stopping
there is estimated: the chance that the leading answer loses the question against the reference,
less what a win is worth. Stopping costs that; asking the next model costs its price and what is
expected after its reply; asking the reference costs its price, and loses nothing. Where a
question's text says something of who is right, it is read too, and may send the question to the
reference at once. The parameter is the price of money in answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from farthing.methods.pool import PoolPolicy, Stages, everyone, list_of, pool_method
from farthing.methods.scorer import Scorers
from farthing.methods.text_regression import TextRegression
from farthing.process.base import NOTHING, State
from farthing.process.operating_points import OperatingPoints, of_calls
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

WIN = 0.8
"""What a won question is worth in lost ones: wins are the first that fail to come true."""
SPEAKS, LEAST_WEIGHT, MOST_WEIGHT = 1.4, 0.05, 6.0
"""Log-odds that a reply speaks for its answer with beyond its own, and the bounds of its weight."""
CLIP = 4.0
"""Standard deviations beyond which a feature says no more."""
STOP, ASK, PASS = range(3)
"""Give the leading answer; ask the next model of the row; ask the reference."""
Ends = Literal["reference", "last", "text"]
"""Who has the last word: the reference; the last of the row; of `text` a question's text names the
one model that is asked."""
_NEARLY = 1e-3


@dataclass(frozen=True)
class ReplyReader:
    """What replies say, on scales that suit a linear score."""

    scorers: Scorers
    mean: FloatArray
    """[2, L] of the log-odds that a reply is right, and of the logarithm of its length."""
    scale: FloatArray
    """[2, L]"""

    def read(self, traces: TraceArrays) -> "Replies":
        """Read every reply of a pool by itself."""
        answer = traces.answer[:, 0, :].astype(np.int64)
        standard = (reply_signals(self.scorers, traces) - self.mean) / self.scale
        odds = standard[:, 0] * self.scale[0] + self.mean[0]
        weight = np.clip(odds + SPEAKS, LEAST_WEIGHT, MOST_WEIGHT)
        silent = answer == NO_ANSWER
        return Replies(
            answer,
            np.where(silent, 0.0, weight),
            np.where(silent, 0.0, standard[:, 0]),
            np.nan_to_num(standard[:, 1]),
        )


def reply_signals(scorers: Scorers, traces: TraceArrays) -> FloatArray:
    """Return the log-odds of each reply and the logarithm of its length, [n, 2, L]; NaN unknown."""
    right = np.clip(scorers.p_right(traces), _NEARLY, 1 - _NEARLY)
    length = np.full(right.shape, np.nan)
    if "output_tokens" in traces.signals:
        length = np.log1p(traces.signals["output_tokens"][:, 0, :].astype(np.float64))
    return np.stack([np.log(right / (1 - right)), length], axis=1)


@dataclass(frozen=True)
class Replies:
    """The replies of a pool, each by itself."""

    answer: IntArray
    """[n, L] codes of the answers."""
    weight: FloatArray
    """[n, L] with which each speaks for its answer; 0 where it gives none."""
    sure: FloatArray
    """[n, L] standardised log-odds that it is right."""
    length: FloatArray
    """[n, L] standardised logarithm of its output tokens; 0 where unknown."""

    def after(self, asked: Sequence[int], hints: "TextHints | None") -> tuple[FloatArray, IntArray]:
        """Return what is seen after some models were asked, [n, F], and who leads, [n]; -1: nobody.

        The lead of the leading answer, its weight and the second's; who backs it, and whether all
        do; sureness, against it where a model says otherwise; silences; lengths; what the text
        says.
        """
        models = list(asked)
        answer, weight = self.answer[:, models], self.weight[:, models]
        silent = answer == NO_ANSWER
        same = (answer[:, :, None] == answer[:, None, :]) & ~silent[:, :, None]
        backing = (same * weight[:, None, :]).sum(axis=2)
        rows, best = np.arange(len(answer)), backing.argmax(axis=1)
        backs = same[rows, best]
        top, second = backing[rows, best], np.where(backs, 0.0, backing).max(axis=1)
        columns = [
            np.stack([top - second, top, second], axis=1),
            backs,
            backs.all(axis=1, keepdims=True),
            self.sure[:, models] * np.where(backs, 1.0, -1.0),
            silent,
            self.length[:, models],
            *([] if hints is None else hints.columns()),
        ]
        leads = np.where(silent.all(axis=1), -1, np.array(models)[best])
        return np.concatenate(columns, axis=1, dtype=np.float64), leads


@dataclass(frozen=True)
class TextHints:
    """What the text says of a row of models and of the reference."""

    right: FloatArray
    """[n, K] chance that each is right."""
    net: FloatArray
    """[n, K] what asking it alone would lose."""
    reference: FloatArray
    """[n] chance that the reference is right."""

    @classmethod
    def of(cls, right: FloatArray, lost: FloatArray, reference: FloatArray) -> "TextHints":
        """Return them by the expected right and lost answers of the row, [n, K] each."""
        net = (1 - WIN) * lost + WIN * (reference[:, None] - right)
        return cls(right, net, reference)

    def upto(self, models: int) -> "TextHints":
        """Return them for so many models of the row."""
        return TextHints(self.right[:, :models], self.net[:, :models], self.reference)

    def columns(self) -> list[FloatArray]:
        """Return them as features."""
        return [self.right, self.net, self.reference[:, None]]

    def before(self) -> FloatArray:
        """Return what the row is expected to lose before anybody is asked, [n]."""
        before: FloatArray = self.net.mean(axis=1)
        return before


def logistic(score: FloatArray) -> FloatArray:
    """Return the logistic function, also where the exponential would overflow."""
    chance: FloatArray = (1 + np.tanh(score / 2)) / 2
    return chance


def net_loss(weights: FloatArray, seen: FloatArray) -> FloatArray:
    """Return what giving the leading answer is expected to lose, [n], net of what it may win.

    Args:
        weights: [5, F + 1] mean and scale of the features, and the weights of a logistic regression
            of losses, of one of wins, and of a linear one of both; constants last.
        seen: [n, F]
    """
    mean, scale, lost, won, net = weights
    standard = np.clip((seen - mean[:-1]) / scale[:-1], -CLIP, CLIP)
    linear = [(standard * each[:-1]).sum(axis=1) + each[-1] for each in (lost, won, net)]
    chances = [logistic(each) for each in linear[:2]]
    found: FloatArray = (chances[0] - WIN * chances[1] + linear[2]) / 2
    return found


def choose(
    stop: FloatArray, asking: FloatArray | None, passing: FloatArray | None
) -> tuple[IntArray, FloatArray]:
    """Return the cheapest of `STOP`, `ASK` and `PASS`, and what it comes to, [n, G] each.

    Args:
        stop: [n] net loss of stopping.
        asking: [n, G] what asking on comes to; None: there is nobody else in the row.
        passing: [n, G] what asking the reference costs; None: it has no part in this.
    """
    shape = next((each.shape for each in (asking, passing) if each is not None), (len(stop), 1))
    never = np.full(shape, np.inf)
    come_to = np.stack(
        [
            np.broadcast_to(stop[:, None], shape),
            never if asking is None else asking,
            never if passing is None else passing,
        ]
    )
    return come_to.argmin(axis=0), come_to.min(axis=0)


@dataclass(frozen=True)
class EvidencePolicy(PoolPolicy):
    """A row of models, and at each price what all evidence says is to be done next."""

    reader: ReplyReader
    words: TextRegression
    """Right and lost answers of the row's models, the reference's right ones, and the logarithm of
    what the reference costs as a multiple of its mean, by the text."""
    priced: bool
    """Whether that price is believed."""
    models: IntArray
    """[K] the row, cheapest first."""
    reference: int
    ends: str
    """One of `Ends`."""
    weights: tuple[FloatArray, ...]
    """Of the net loss after each model of the row (`net_loss`)."""
    edges: tuple[FloatArray, ...]
    """Before each model of the row: the bins of the net loss expected there."""
    ahead: tuple[FloatArray, ...]
    """[B, G] for each of them: what comes of asking it, without its price; of the first one
    empty where the text says nothing."""
    prices: FloatArray
    """[K] mean cost of each, as a multiple of the reference's."""
    values: FloatArray
    """[G] what the reference's mean cost is worth in answers, descending."""

    def next(self, state: State, point: int) -> tuple[IntArray, BoolArray, IntArray]:
        """Go along the row from the model that was asked last, or on to the reference."""
        n, row = len(state), list_of(self.models)
        hints, passing = self._by_text(state.recorded)
        if self.ends == "text":
            chosen = self._named(hints, passing)[:, point]
            rows = np.arange(n)
            asks = ~state.known[rows, chosen] & state.can_buy[rows, chosen]
            return np.where(asks, chosen, NOTHING), asks, chosen
        place = np.full(state.recorded.n_roles, -1)
        place[row] = np.arange(len(row))
        latest = np.where(state.known, place, -1).max(axis=1)
        line, single = np.full(n, NOTHING), np.full(n, -1)
        asked = state.known[:, self.reference]
        single[asked] = self.reference
        passes = self._passes_at_once(hints, passing, n)[:, point] & (latest < 0) & ~asked
        on = ~asked & ~passes
        stages = self._stages(state.seen, hints, passing)
        for k in range(max(int(latest.min(initial=0)), 0), len(row)):
            here = on & (line == NOTHING) & (latest <= k)
            asks = here & (latest < k) & state.can_buy[:, row[k]]
            line[asks] = row[k]
            heard = here & ~asks
            if heard.any():
                action, leads = stages[k]
                single[heard] = leads[heard]
                passes |= heard & (action[:, point] == PASS)
                on[heard] = action[heard, point] == ASK
        line[passes & state.can_buy[:, self.reference]] = self.reference
        return line, line != NOTHING, single

    def points(self, traces: TraceArrays) -> OperatingPoints:
        """Go along the row at every price."""
        n, models = len(traces), np.arange(traces.n_roles)
        hints, passing = self._by_text(traces)
        if self.ends == "text":
            given = self._named(hints, passing)
            return of_calls(traces, self.values, given[:, :, None] == models, given)
        passes = self._passes_at_once(hints, passing, n)
        made = np.zeros((n, len(self.values), traces.n_roles), dtype=bool)
        given = np.full(passes.shape, -1)
        on, stages = ~passes, self._stages(traces, hints, passing)
        for k, model in enumerate(list_of(self.models)):
            made[:, :, model] = on
            action, leads = stages[k]
            given = np.where(on & (action == STOP), leads[:, None], given)
            passes |= on & (action == PASS)
            on &= action == ASK
        made[:, :, self.reference] |= passes
        return of_calls(traces, self.values, made, np.where(passes, self.reference, given))

    def _by_text(self, traces: TraceArrays) -> tuple[TextHints | None, FloatArray]:
        """Return what the text says of the row, and what asking the reference costs, [n, G]."""
        if not self.words.reads:
            return None, np.broadcast_to(self.values, (len(traces), len(self.values)))
        said, k = self.words.predict(traces), len(self.models)
        hints = TextHints.of(said[:, :k], said[:, k : 2 * k], said[:, 2 * k])
        price = np.exp(said[:, -1]) if self.priced else np.ones(len(traces))
        return hints, price[:, None] * self.values

    def _asking(self, k: int, expected: FloatArray) -> FloatArray:
        """Return what asking model k of the row comes to, [n, G]."""
        value: FloatArray = self.ahead[k][np.searchsorted(self.edges[k], expected)]
        comes_to: FloatArray = value + self.values * self.prices[k]
        return comes_to

    def _passes_at_once(self, hints: TextHints | None, passing: FloatArray, n: int) -> BoolArray:
        """Return who goes to the reference by the text alone, [n, G]."""
        if hints is None or not self.ahead[0].size:
            return np.zeros((n, len(self.values)), dtype=bool)
        return np.asarray(passing < self._asking(0, hints.before()))

    def _named(self, hints: TextHints | None, passing: FloatArray) -> IntArray:
        """Return the one model that the text names at each price, [n, G]."""
        return named(hints, passing, self.values, self.prices, self.models, self.reference)

    def _stages(self, traces: TraceArrays, hints: TextHints | None, passing: FloatArray) -> Stages:
        """Return what to do after each model of the row, [n, G], and who leads, [n]."""
        replies, row = self.reader.read(traces), list_of(self.models)

        def after(of: TraceArrays, k: int) -> tuple[IntArray, IntArray]:
            last = k + 1 == len(row)
            if last and self.ends == "last":
                return np.full((len(of), len(self.values)), STOP), everyone(of, row[-1])
            known = None if hints is None else hints.upto(k + 1)
            seen, leads = replies.after(row[: k + 1], known)
            expected = net_loss(self.weights[k], seen)
            asking = None if last else self._asking(k + 1, expected)
            to_reference = passing if self.ends == "reference" else None
            return choose(expected, asking, to_reference)[0], leads

        return Stages(traces, after)


def named(
    hints: TextHints | None,
    passing: FloatArray,
    values: FloatArray,
    prices: FloatArray,
    models: IntArray,
    reference: int,
) -> IntArray:
    """Return the model that loses and costs least by the text alone, [n, G].

    Args:
        hints: what the text says of the row.
        passing: [n, G] what asking the reference costs.
        values: [G] worth of the reference's mean cost.
        prices: [K] of the row's models.
        models: [K]
        reference: its place.
    """
    if hints is None:
        raise RuntimeError("a policy without text names nobody by it")
    comes_to = hints.net[:, None, :] + values[:, None] * prices
    every = np.concatenate([comes_to, passing[:, :, None]], axis=2)
    who: IntArray = np.append(models, reference)[every.argmin(axis=2)]
    return who


EVIDENCE_CASCADE = pool_method(
    name="evidence-cascade",
    label="Evidence cascade",
    meaning="Up to three models before the reference; agreement, silence, length and text decide",
    policy=EvidencePolicy,
    learner="farthing.methods.evidence.learner:EVIDENCE_CASCADE",
    proof_share=Fraction(3, 5),
    tried_for=frozenset({"one"}),
    place=79,
)

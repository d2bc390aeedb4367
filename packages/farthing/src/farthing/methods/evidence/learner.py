"""Training of the evidence cascade: which models in which row, and what is to be done after each.

Every row is tried on training questions, each scored as if it had been left out. What counts is
what the row is likely to cost once a proof on so many new questions has bounded what it loses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from farthing.methods.evidence.policy import (
    ASK,
    CLIP,
    PASS,
    STOP,
    WIN,
    Ends,
    EvidencePolicy,
    Replies,
    ReplyReader,
    TextHints,
    choose,
    logistic,
    named,
    net_loss,
    reply_signals,
)
from farthing.methods.evidence.shortlist import shortlist
from farthing.methods.pool import (
    PoolLearner,
    PoolPolicy,
    PoolTables,
    Rehearsed,
    strongest,
    tables,
)
from farthing.methods.scorer import fit_scorers
from farthing.methods.text_regression import NO_TEXT, TextRegression, fit_text, texts_of
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

VALUES = np.concatenate([[2.0, 1.0], np.geomspace(0.7, 0.01, 50), [0.006, 0.003]])
"""What the reference's mean cost is worth in answers."""
ROW = 3
"""The most models in a row."""
NEAR = 0.03
"""Accuracy that a model which has the last word may lack against the reference."""
SKILL, PRICE_SKILL = 0.03, 0.2
"""Skill from which a question's text is read, and its price by the text is believed."""
FOLDS, BINS = 5, 12
LOGISTIC_PULL, LINEAR_PULL = 10.0, 60.0
"""Of each weight towards 0, in questions."""
LONGER = 0.05
"""What each further model of a row must save, as longer rows are fitted to more."""
_NEWTON, _STEP, _ENOUGH = 25, 4.0, 1e-8
"""Steps at most, how far one may move any log-odds, and where that is far enough."""


@dataclass(frozen=True)
class TriedRow:
    """A row of models with what is to be done at each price, and what that came to."""

    models: tuple[int, ...]
    ends: Ends
    figures: CrossFitted
    edges: tuple[FloatArray, ...] = ()
    ahead: tuple[FloatArray, ...] = ()


@dataclass(frozen=True)
class EvidenceLearner(PoolLearner):
    """Fits every row of the shortlist, and keeps the best one."""

    strong: str | None = None
    """The reference; None: the most accurate model in training."""
    margin: float = 0.02
    """Accuracy that may be lost, by which rows are scored."""
    proving: int = 500
    """Questions that will prove it."""

    def learn(self, train: TraceArrays, seed: int) -> PoolPolicy:
        """Return the policy of the best row."""
        return self.rehearse(train, seed).policy

    def rehearse(self, train: TraceArrays, seed: int) -> Rehearsed:
        """Return the policy of the best row, with what it came to on questions left out."""
        lesson = _Lesson.of(train, strongest(train, self.strong), seed)
        best = min(lesson.rows(), key=lambda row: row.figures.score(self.margin, self.proving))
        return Rehearsed(lesson.policy(best), best.figures)


@dataclass(frozen=True)
class _After:
    """The leading answer after some models, or the last one's."""

    expected: FloatArray
    """[n] net loss, fitted without the question."""
    lost: BoolArray
    won: BoolArray
    weights: FloatArray
    """Fitted to all questions."""


@dataclass(frozen=True)
class _Lesson:
    """Training questions, read once for all rows."""

    pool: PoolTables
    reference: int
    price: FloatArray
    """[n, L] costs as multiples of the reference's mean."""
    reader: ReplyReader
    replies: Replies
    words: TextRegression
    said: FloatArray
    """[n, 2 L + 1] right and lost answers, and the logarithm of the reference's price, by the text,
    each question left out; empty without text."""
    priced: bool
    passing: FloatArray
    """[n, G] what asking the reference costs by the text."""
    fold: IntArray
    known: dict[tuple[tuple[int, ...], bool], _After] = field(default_factory=dict)

    @classmethod
    def of(cls, train: TraceArrays, reference: int, seed: int) -> "_Lesson":
        pool, n = tables(train), len(train)
        price = pool.cost / max(float(pool.cost[:, reference].mean()), 1e-9)
        reader = _fit_reader(train)
        words, said = NO_TEXT, np.empty((n, 0))
        priced, passing = False, np.ones(n)
        if train.question is not None:
            right = pool.right.astype(np.float64)
            lost = right[:, [reference]] * (1 - right)
            paid = np.log(np.maximum(price[:, [reference]], 1e-6))
            fit, by_price = fit_text(texts_of(train), np.hstack([right, lost]), paid)
            if fit.skill >= SKILL:
                words = fit.regression.beside(by_price.regression)
                said = np.hstack([fit.left_out, by_price.left_out])
                priced = by_price.skill >= PRICE_SKILL
                passing = np.exp(by_price.left_out[:, 0]) if priced else passing
        fold = np.random.default_rng(seed).permutation(n) % FOLDS
        read, worth = reader.read(train), passing[:, None] * VALUES
        return cls(pool, reference, price, reader, read, words, said, priced, worth, fold)

    def shortlist(self) -> list[int]:
        accuracy: FloatArray = self.pool.right.mean(axis=0)
        return shortlist(self.price.mean(axis=0), accuracy, self.reference)

    def rows(self) -> Iterator[TriedRow]:
        same = np.ones_like(VALUES)
        alone = CrossFitted(len(self.fold), same, 0 * same, 0 * same)
        yield TriedRow((self.reference,), "last", alone, (np.zeros(0),), (np.zeros((0, 0)),))
        short = self.shortlist()
        for length in range(1, ROW + 1):
            for row in combinations(short, length):
                for ends in self.endings(row):
                    yield self.tried(row, ends)

    def endings(self, row: tuple[int, ...]) -> list[Ends]:
        accuracy = self.pool.right.mean(axis=0)
        found: list[Ends] = ["reference"]
        if accuracy[row[-1]] >= accuracy[self.reference] - NEAR:
            found.append("last")
        return [*found, "text"] if self.words.reads else found

    def hints(self, row: tuple[int, ...]) -> TextHints | None:
        """Return what the text says of a row, of each question as if it had been left out."""
        if not self.words.reads:
            return None
        models, n_models = list(row), self.price.shape[1]
        lost = self.said[:, [n_models + model for model in row]]
        return TextHints.of(self.said[:, models], lost, self.said[:, self.reference])

    def tried(self, row: tuple[int, ...], ends: Ends) -> TriedRow:
        hints = self.hints(row)
        prices = self.price[:, list(row)].mean(axis=0)
        if ends == "text":
            given = named(hints, self.passing, VALUES, prices, np.array(row), self.reference)
            return TriedRow(row, ends, self._named(given, row, hints))
        stages = [
            self.after(row[: k + 1], last=ends == "last" and k + 1 == len(row))
            for k in range(len(row))
        ]
        passing = self.passing if ends == "reference" else None
        edges: list[FloatArray] = []
        ahead: list[FloatArray] = []
        actions: list[IntArray] = []
        asking: FloatArray | None = None
        for k in range(len(row) - 1, -1, -1):
            last = ends == "last" and k + 1 == len(row)
            action, value = choose(stages[k].expected, asking, None if last else passing)
            actions.insert(0, np.broadcast_to(action, self.passing.shape))
            before = stages[k - 1].expected if k else None if hints is None else hints.before()
            if before is None or (not k and ends != "reference"):
                edges.insert(0, np.zeros(0))
                ahead.insert(0, np.zeros((0, 0)))
                break
            edge, mean = binned(before, np.broadcast_to(value, self.passing.shape))
            edges.insert(0, edge)
            ahead.insert(0, mean)
            asking = mean[np.searchsorted(edge, before)] + VALUES * prices[k]
        passes = np.zeros(self.passing.shape, dtype=bool)
        if hints is not None and ends == "reference" and asking is not None:
            passes = self.passing < asking
        figures = self._followed(row, actions, stages, passes)
        return TriedRow(row, ends, figures, tuple(edges), tuple(ahead))

    def _followed(
        self,
        row: tuple[int, ...],
        actions: Sequence[IntArray],
        stages: Sequence[_After],
        passes: BoolArray,
    ) -> CrossFitted:
        """Add up what a row's actions cost and lose, where some pass to the reference at once."""
        theirs = self.price[:, [self.reference]]
        on, cost = ~passes, passes * theirs
        lost, won, expected = (np.zeros(on.shape) for _ in range(3))
        for model, action, stage in zip(row, actions, stages, strict=True):
            cost += on * self.price[:, [model]]
            stops = on & (action == STOP)
            lost += stops & stage.lost[:, None]
            won += stops & stage.won[:, None]
            expected += stops * stage.expected[:, None]
            cost += (on & (action == PASS)) * theirs
            on = on & (action == ASK)
        longer = 1 + LONGER * (len(row) - 1)
        cost, lost, won, expected = (each.mean(axis=0) for each in (cost, lost, won, expected))
        return CrossFitted(len(on), cost, lost, won, expected, longer)

    def _named(self, given: IntArray, row: tuple[int, ...], hints: TextHints | None) -> CrossFitted:
        """Measure one model a question, [n, G]."""
        rows = np.arange(len(given))[:, None]
        right, theirs = self.pool.right[rows, given], self.pool.right[:, [self.reference]]
        lost, won = (theirs & ~right).mean(axis=0), (right & ~theirs).mean(axis=0)
        net = np.zeros(self.price.shape)
        if hints is not None:
            net[:, list(row)] = hints.net
        expected, cost = net[rows, given].mean(axis=0), self.price[rows, given].mean(axis=0)
        longer = 1 + LONGER * (len(row) - 1)
        return CrossFitted(len(given), cost, lost, won, expected, longer)

    def after(self, asked: tuple[int, ...], *, last: bool = False) -> _After:
        """Return what the leading answer after some models loses, or the last one's answer."""
        if (asked, last) not in self.known:
            seen, leads = self.replies.after(asked, self.hints(asked))
            if last:
                leads = np.full(len(leads), asked[-1])
            right = self.pool.right[np.arange(len(leads)), leads] & (leads >= 0)
            theirs = self.pool.right[:, self.reference]
            lost, won = theirs & ~right, right & ~theirs
            expected = np.empty(len(leads))
            for k in range(FOLDS):
                held, fit = self.fold == k, self.fold != k
                weights = fit_net_loss(seen[fit], lost[fit], won[fit])
                expected[held] = net_loss(weights, seen[held])
            weights = fit_net_loss(seen, lost, won)
            self.known[asked, last] = _After(expected, lost, won, weights)
        return self.known[asked, last]

    def policy(self, row: TriedRow) -> EvidencePolicy:
        models, n_models = list(row.models), self.price.shape[1]
        columns = [*models, *(n_models + model for model in models), self.reference, -1]
        words = self.words
        if words.reads:
            words = TextRegression(words.idf, words.weight[:, columns], words.constant[columns])
        stages = range(0 if row.ends == "text" else len(models))
        return EvidencePolicy(
            reader=self.reader,
            words=words,
            priced=self.priced,
            models=np.array(models),
            reference=self.reference,
            ends=row.ends,
            weights=tuple(self.after(row.models[: k + 1]).weights for k in stages),
            edges=row.edges,
            ahead=row.ahead,
            prices=self.price[:, models].mean(axis=0),
            values=VALUES,
        )


def _fit_reader(train: TraceArrays) -> ReplyReader:
    scorers = fit_scorers(train)
    signals = reply_signals(scorers, train)
    spoke = (train.answer[:, 0, :] != NO_ANSWER)[:, None, :]
    known = np.where(spoke, signals, np.nan)
    count = np.maximum((~np.isnan(known)).sum(axis=0), 1)
    mean = np.nansum(known, axis=0) / count
    spread = np.sqrt(np.nansum((known - mean) ** 2, axis=0) / count)
    return ReplyReader(scorers, mean, np.where(spread > 1e-6, spread, 1.0))


def binned(score: FloatArray, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what a value is by a score: edges of bins, and means of [n, G] values in each, [B, G].

    Neighbouring bins count half, so that the mean varies smoothly.
    """
    edges = np.unique(np.quantile(score, np.linspace(0, 1, BINS + 1)[1:-1]))
    member = (np.searchsorted(edges, score)[:, None] == np.arange(len(edges) + 1)).astype(float)
    near = member + 0.5 * (np.roll(member, 1, axis=1) + np.roll(member, -1, axis=1))
    near[:, 0] = member[:, 0] + 0.5 * member[:, 1:2].sum(axis=1)
    near[:, -1] = member[:, -1] + 0.5 * member[:, -2:-1].sum(axis=1)
    means: FloatArray = (near.T @ value) / np.maximum(near.sum(axis=0), 1e-9)[:, None]
    return edges, means


def fit_net_loss(seen: FloatArray, lost: BoolArray, won: BoolArray) -> FloatArray:
    """Return the weights that `net_loss` takes, [5, F + 1]."""
    mean, scale = seen.mean(axis=0), seen.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1.0)
    standard = np.clip((seen - mean) / scale, -CLIP, CLIP)
    net = lost - WIN * won
    centred = standard - standard.mean(axis=0)
    pull = LINEAR_PULL * np.eye(seen.shape[1])
    slope = np.linalg.solve(centred.T @ centred + pull, centred.T @ net)
    constant = net.mean() - standard.mean(axis=0) @ slope
    return np.stack(
        [
            np.append(mean, 0.0),
            np.append(scale, 1.0),
            _logistic(standard, lost),
            _logistic(standard, won),
            np.append(slope, constant),
        ]
    )


def _logistic(standard: FloatArray, label: BoolArray) -> FloatArray:
    """Fit logistic regression with a ridge by Newton's method, [F + 1]; the constant is free."""
    known = np.column_stack([standard, np.ones(len(standard))])
    share = (label.sum() + 0.5) / (len(label) + 1)
    weight = np.append(np.zeros(standard.shape[1]), np.log(share / (1 - share)))
    start = weight[-1]
    pull = np.append(np.full(standard.shape[1], LOGISTIC_PULL), 1e-3)
    for _ in range(_NEWTON):
        chance = logistic(known @ weight)
        away = weight - np.append(np.zeros(standard.shape[1]), start)
        slope = known.T @ (chance - label) + pull * away
        curve = (known * (chance * (1 - chance))[:, None]).T @ known + np.diag(pull)
        step = np.linalg.solve(curve, slope)
        far = float(np.abs(known @ step).max())
        weight = weight - step * min(1.0, _STEP / max(far, _ENOUGH))
        if far < _ENOUGH:
            break
    return weight


EVIDENCE_CASCADE = EvidenceLearner()

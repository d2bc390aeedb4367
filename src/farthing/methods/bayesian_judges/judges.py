"""What replies say of which answer is right, by Bayes, and what one more reply is worth.

States: which of K answers is right, each as likely, and how hard the question is, one of H classes.
Given the state replies are independent. Judge j is right with probability r(j, h); else it says
nothing with probability s(j), or one of the K - 1 wrong answers, each as likely. Beside its reply
it shows how sure it is, as one of B bins, whose chances depend on whether it is right. K need be no
whole number; where more answers were heard than K, no other is expected.

Recorded judges are not independent: they learned from the same texts, and fall into the same traps.
k replies whose evidence is correlated by rho are worth k / (1 + (k - 1) rho) independent ones, so
the log likelihood of k replies is divided by 1 + (k - 1) rho (the design effect of Kish 1965). At
rho = 0 all is exact Bayes.

The probability that the best answer is right, after one more reply minus before, is what the reply
is worth for each dollar that a wrong answer costs: `gain`. Sums over states and replies are exact.

Source: the rule is that of arXiv 2601.01522 (`bayes.py`), with losses of one where the answer is
wrong. That judges are recorded, and their likelihoods those of Dawid and Skene (1979) in classes of
difficulty, is ours: recorded agents give answers, and nobody asked them how typical these are.
"""

from dataclasses import dataclass

import numpy as np

from farthing.methods.scorer import Scorers
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, IntArray, TraceArrays

DIGITS = 12
"""Of a gain; what lies below depends on the order of additions."""


@dataclass(frozen=True)
class Judges:
    """How L judges reply."""

    scorers: Scorers
    edges: FloatArray
    """[L, B - 1] between bins of the scorers' probabilities."""
    classes: FloatArray
    """[H] share of the questions in each class of difficulty."""
    right: FloatArray
    """[L, H] r, above 0 and below 1."""
    silent: FloatArray
    """[L] s."""
    sure: FloatArray
    """[2, L, B] chances of the bins where it is wrong, and where it is right."""
    answers: float
    """K."""
    correlation: float = 0.0
    """rho, from 0 to 1."""

    def said(self, traces: TraceArrays) -> "Replies":
        """Return what the judges said, and in which bin each reply is."""
        score = self.scorers.p_right(traces)
        bins = (score[:, :, None] > self.edges).sum(axis=2)
        return Replies(traces.answer[:, 0, :].astype(np.int64), bins)

    def belief(self, replies: "Replies", known: BoolArray) -> "Belief":
        """Return what the known replies, [n, L], say.

        A candidate stands under the first judge that gives its answer.
        """
        said = known & (replies.answer != NO_ANSWER)
        same = (replies.answer[:, :, None] == replies.answer[:, None]) & said[:, None]
        first = said & ~(np.tril(same, -1).any(axis=2))
        at = np.arange(len(self.right))
        wrong, right = (np.log(self.sure[k][at, replies.bins]) for k in (0, 1))  # [n, L]
        agrees = np.log(self.right) + right[:, :, None]  # [n, L, H]
        differs = np.log1p(-self.right) + (np.log(self._one_wrong()) + wrong)[:, :, None]
        silence = np.log1p(-self.right) + np.log(self.silent)[:, None]
        against = np.where(said[:, :, None], differs, np.where(known[:, :, None], silence, 0.0))
        shared = 1.0 + self.correlation * np.maximum(known.sum(axis=1) - 1, 0)  # [n]
        none = np.log(self.classes) + against.sum(axis=1) / shared[:, None]  # [n, H] all are wrong
        lift = np.where(same[:, :, :, None], (agrees - differs)[:, None], 0.0).sum(axis=2)
        lift /= shared[:, None, None]
        heard = np.where(first[:, :, None], none[:, None] + lift, -np.inf)  # [n, L, H]
        top = np.maximum(heard.max(axis=(1, 2)), none.max(axis=1))[:, None]
        unheard = np.maximum(self.answers - first.sum(axis=1), 0.0)
        weight, left = np.exp(heard - top[:, None]), np.exp(none - top)
        total = weight.sum(axis=(1, 2)) + unheard * left.sum(axis=1)
        return Belief(weight / total[:, None, None], left / total[:, None], unheard, first)

    def gain(self, belief: "Belief") -> FloatArray:
        """Return what a reply of each judge adds to the chance that the answer is right, [n, L]."""
        right = self.right[:, :, None] * self.sure[1][:, None]  # [L, H, B]
        one_wrong = self._one_wrong()[:, None] * self.sure[0]  # [L, B]
        wrong = (1.0 - self.right)[:, :, None] * one_wrong[:, None]
        weight = belief.heard[:, :, None, :, None]  # [n, candidate, judge, H, bin]
        agrees, differs = (weight * right).sum(axis=3), (weight * wrong).sum(axis=3)
        which = np.arange(agrees.shape[1])[None, :, None, None]
        leads = differs.argmax(axis=1)[:, None] == which
        best = differs.max(axis=1)
        second = np.where(leads, 0.0, differs).max(axis=1)
        other = np.where(leads, second[:, None], best[:, None])
        candidate = belief.first[:, :, None, None]
        heard = (candidate * np.maximum(agrees, other)).sum(axis=(1, 3))
        unheard = belief.unheard[:, None, None]
        new = (belief.left[:, None, :, None] * right).sum(axis=2) * unheard
        fresh = np.maximum(new, best * unheard).sum(axis=2)
        mute = (1.0 - self.right) * self.silent[:, None]  # [L, H]
        nothing = (belief.heard[:, :, None] * mute).sum(axis=3).max(axis=1)
        later: FloatArray = heard + fresh + nothing - belief.chance.max(axis=1)[:, None]
        return np.maximum(np.round(later, DIGITS), 0.0)

    def _one_wrong(self) -> FloatArray:
        """Return the chance that a wrong judge says one certain wrong answer, [L]."""
        chance: FloatArray = (1.0 - self.silent) / (self.answers - 1.0)
        return chance


@dataclass(frozen=True)
class Replies:
    """What judges say, [n, L]; only where `known` says so was it paid for."""

    answer: IntArray
    bins: IntArray


@dataclass(frozen=True)
class Belief:
    """Probabilities after some replies; those of all states add up to 1."""

    heard: FloatArray
    """[n, L, H] that the answer of this judge is right and the question in this class; 0 where an
    earlier judge gave the same answer, or this one none."""
    left: FloatArray
    """[n, H] the same of one certain answer that nobody gave."""
    unheard: FloatArray
    """[n] the number of those."""
    first: BoolArray
    """[n, L] the judges under whom candidates stand."""

    @property
    def chance(self) -> FloatArray:
        """[n, L] that each candidate is right."""
        chance: FloatArray = self.heard.sum(axis=2)
        return chance

    @property
    def leader(self) -> IntArray:
        """[n] the judge under whom the likeliest answer stands; -1 where there is none."""
        return np.where(self.first.any(axis=1), np.round(self.chance, DIGITS).argmax(axis=1), -1)

"""Ask a few cheap models, stop where going on is not worth its price; the strong model ends it.

What is lost against the strong model is what counts: the questions that it answers rightly and
the answer given does not. After each call a linear regression on every reply so far estimates how
much less is lost by going on, net of what that costs at a price, by backward induction along the
row of models. Which models come before the strong one, and in which order, is decided by the
training questions, cross-fitted. The parameter is the price.

Decisions count losses alone, because wins over the strong model are the first thing that fails to
come true where some models find training questions easier than those to come.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.methods.answer_posterior import AnswerPosterior, Replies
from farthing.methods.pool_policy import RowPolicy, Stages, everyone, list_of
from farthing.traces.arrays import BoolArray, FloatArray, IntArray, TraceArrays

_CLIP = 0.01
_NOBODY = -2


@dataclass(frozen=True)
class PoolGainPolicy(RowPolicy):
    """A row of models, and after each what going on would gain at each price."""

    leading: AnswerPosterior
    models: IntArray
    """[K] the row; the strong model ends it."""
    weights: tuple[FloatArray, ...]
    """[F, G] after each call but the last."""
    values: FloatArray
    """[G] prices, descending."""

    def row(self, point: int) -> Sequence[int]:
        """Ask the models of the row."""
        del point
        return list_of(self.models)

    def stages(self, traces: TraceArrays) -> Stages:
        """Weigh the replies up to each model of the row."""
        row = self.models.tolist()
        replies = self.leading.replies(traces)
        return Stages(traces, lambda of, k: features_after(self.leading, replies, row, of, k))

    def after(self, stages: Stages, k: int, point: int) -> tuple[BoolArray, IntArray]:
        """Go on while it gains more than it costs; the strong model has the last word."""
        if k == len(self.weights):
            last = everyone(stages.traces, int(self.models[-1]))
            return last < 0, last
        known, leads = stages[k]
        return (known * self.weights[k][:, point]).sum(axis=1) > 0, leads


def features_after(
    leading: AnswerPosterior, replies: Replies, row: Sequence[int], traces: TraceArrays, k: int
) -> tuple[FloatArray, IntArray]:
    """Return what is known after model k of a row, [n, F], and who leads, [n].

    A constant, the log-odds of the leading answer and of each reply, and who backs the leader.
    """
    asked = list(row[: k + 1])
    step = leading.after(replies, np.isin(np.arange(traces.n_roles), asked))
    p = np.clip(step.probability, _CLIP, 1 - _CLIP / 2)
    answer = traces.answer[:, 0, :]
    leads = np.where(step.model >= 0, answer[np.arange(len(traces)), step.model], _NOBODY)
    agrees = answer[:, asked] == leads[:, None]
    columns = [np.ones(len(p)), np.log(p / (1 - p)), *(replies.log_odds[:, asked] / 2).T]
    return np.stack([*columns, *(agrees.T if k else [])], axis=1), step.model

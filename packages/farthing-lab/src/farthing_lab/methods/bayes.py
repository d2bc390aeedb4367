"""Bayes' rule over a few states, decisions at least expected cost, and the value of evidence.

States are what may be true, observations what was seen. A rater says how typical an observation is
of each state; of several raters the median counts, so that one who is far off moves nothing.

Source: arXiv 2601.01522 (contrastive likelihoods, the median over models, least expected cost, and
more evidence while its value exceeds its price). The value of one observation before it is made is
the textbook's: Raiffa and Schlaifer 1961, "Applied statistical decision theory".
"""

import numpy as np

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray


def posterior(prior: FloatArray, ratings: FloatArray) -> FloatArray:
    """Return the probability of each state after all observations, [S].

    prior(s) times the product, over observations, of the median rating of s. The order of the
    observations, and that of the raters, does not matter.

    Args:
        prior: [S] probability of each state.
        ratings: [E, M, S] how typical each of M raters finds each of E observations of each state,
            as p(observation | state) up to a factor of its own for each observation; above 0.

    >>> said = np.array([[[0.8, 0.2], [0.6, 0.4], [0.01, 0.99]]])  # the third is far off
    >>> posterior(np.array([0.5, 0.5]), said).round(3).tolist()
    [0.6, 0.4]
    """
    likelihood = np.median(ratings, axis=1)
    with np.errstate(divide="ignore"):
        logs = np.log(prior) + np.log(likelihood).sum(axis=0)
    if not np.isfinite(logs.max(initial=-np.inf)):
        raise InputError("no state is possible: ratings and priors of 0 exclude all of them")
    weight = np.exp(logs - logs.max())
    return np.asarray(weight / weight.sum())


def expected_costs(belief: FloatArray, loss: FloatArray) -> FloatArray:
    """Return what each decision is expected to cost, [D].

    Args:
        belief: [S] probability of each state.
        loss: [D, S] what a decision costs in a state, in any unit.
    """
    return np.asarray(loss @ belief)


def value_of_evidence(belief: FloatArray, loss: FloatArray, likelihood: FloatArray) -> float:
    """Return by how much one observation is expected to lower the cost of the best decision.

    min over d of E[loss(d)], minus the sum over outcomes o of min over d of E[loss(d); o]. It is
    never below 0, and 0 where no outcome changes the decision.

    Args:
        belief: [S] probability of each state.
        loss: [D, S] what a decision costs in a state.
        likelihood: [O, S] probability of each outcome in each state.

    >>> wrong = np.array([[0.0, 10.0], [10.0, 0.0]])
    >>> round(value_of_evidence(np.array([0.7, 0.3]), wrong, np.array([[0.9, 0.1], [0.1, 0.9]])), 6)
    2.0
    """
    joint = belief * likelihood
    now = float(expected_costs(belief, loss).min())
    later = float((joint @ loss.T).min(axis=1).sum())
    return max(0.0, now - later)

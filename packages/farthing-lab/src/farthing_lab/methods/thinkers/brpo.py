"""BRPO (AnytimeReasoner): a thought is worth what it answers at every cut, not at its end alone.

A thought is asked at S cuts; r_j is whether it is right at the j-th, and p_j how likely the user
cuts there. Tokens between cut s - 1 and cut s decide about that cut and all later ones, so they
are worth (s from 0, as the authors' code counts)

    R_s = sum over j >= s of p_j r_j
    V1  = (mean of r_0 .. r_(s-1), of which each counts twice the one before) sum over j >= s of p_j
    V2  = mean of R_s over the question's thoughts
    A_s = R_s - (s V1 + (S - s) V2) / S

V1 is what this thought's own past says, V2 what its companions say; the later the cut, the more
the first counts.

Source: Optimizing Anytime Reasoning via Budget Relative Policy Optimization (arXiv 2505.13438),
and `brpo.py` of the authors' code (sail-sg/AnytimeReasoner). They train what answers at a cut as
well, by comparison at that cut. Here the answer is read off the thought, and left as it is.
"""

from dataclasses import dataclass

import numpy as np

from farthing.traces.arrays import FloatArray
from farthing_lab.methods.thinkers.base import UNTOLD_ALONE, Thoughts, mean_of, thinker_card

DISCOUNT = 2.0
"""How much more a cut counts than the one before, in the mean over the thought's past."""


@dataclass(frozen=True)
class Brpo:
    """BRPO's judgement of thoughts."""

    cuts: tuple[float, ...] = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 1.0)
    """The authors' are even; most of a thought lies before half of the cap here."""
    chances: tuple[float, ...] = ()
    """How likely a thought is cut at each; empty: all alike."""
    modes: tuple[str, ...] = UNTOLD_ALONE

    def advantage(self, thoughts: Thoughts, /) -> FloatArray:
        right, cuts = thoughts.right, thoughts.right.shape[1]
        p = np.array(self.chances or [1.0] * cuts)
        p = p / p.sum()
        later = p[::-1].cumsum()[::-1]
        earned = (right * p)[:, ::-1].cumsum(axis=1)[:, ::-1]
        beside = mean_of(earned, thoughts.group)
        weight = DISCOUNT ** np.arange(cuts)
        past = (right * weight).cumsum(axis=1)[:, :-1] / weight.cumsum()[:-1]
        own = np.concatenate([np.zeros((len(right), 1)), past * later[1:]], axis=1)
        at = np.arange(cuts)
        found: FloatArray = earned - (at * own + (cuts - at) * beside) / cuts
        return found


BRPO = thinker_card(
    name="brpo",
    label="BRPO",
    meaning="rewards a thought for what it would answer at every cut",
    make=Brpo(),
    paper="2505.13438",
    place=21,
)

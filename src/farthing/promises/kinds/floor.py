"""Right at least so often: the cheapest operating point of which that is proved."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from farthing.promises.base import Promise
from farthing.promises.statistics.binomial import binomial_cdf
from farthing.promises.certificate import Certificate
from farthing.promises.figures import share_of
from farthing.promises.levels import exact_level
from farthing.promises.payload import Payload
from farthing.promises.statistics.fixed_sequence import cheapest_proven, point_kappa
from farthing.promises.texts import DELTA, REALISED, Column, Goal, PromiseOption, known, share


@dataclass(frozen=True)
class Floor(Promise):
    kind: ClassVar[str] = "floor"
    layout: ClassVar[str] = "grid"
    options: ClassVar = (
        PromiseOption("least", "the least share of right answers.", "probability",
                      "--least 0.7, how often the answer is right"),
        DELTA,
    )
    beside_metric: ClassVar[str] = REALISED

    least: Fraction = Fraction(7, 10)
    delta: Fraction = Fraction(1, 10)

    @classmethod
    def of_options(cls, alpha, given):
        return cls(**known(given, "least", "delta"))

    @property
    def line(self):
        return float(self.least)

    def evidence(self, observed, questions):
        return observed

    def point(self, evidence):
        wrong = (~evidence.correct).sum(axis=0)
        chance = 1 - float(self.least)
        p_values = np.array([binomial_cdf(int(w), len(evidence.correct), chance) for w in wrong])
        return cheapest_proven(p_values, exact_level(self.delta), evidence.spent)

    def prove(self, evidence, **about):
        point = self.point(evidence)
        return Certificate(
            promise=FloorPromise(least=exact_level(self.least), delta=self.delta, point=point),
            kappa=point_kappa(evidence.kappas, point),
            n=len(evidence.correct),
            **about,
        )

    def goal(self):
        level = share(self.line)
        return Goal(f"Floor of {level}", REALISED, "Accuracy", self.line, level, level, 0.0,
                    REALISED, of_alpha=False)

    def claim(self, *, alone=True):
        return f"Of 100 answers at least {100 * self.line:.0f} are right."

    def under(self):
        return f"With a floor of {share(self.line)},"

    def columns(self):
        return [Column(REALISED, "Right of all", "Floor", share, "share of right answers")]


class FloorPromise(Payload, msgspec.Struct, frozen=True, tag_field="kind", tag="floor"):
    evidence: ClassVar[type] = object
    least: Fraction
    delta: Fraction
    point: int | None = None

    @classmethod
    def asks(cls):
        return Floor

    def asked(self):
        return Floor(self.least, self.delta)

    @property
    def promises(self):
        return self.point is not None

    def sentence(self, of):
        return f"At least {float(self.least):g} of the answers are right, by {of.n} questions."

    def plain_language(self, of):
        return self.sentence(of)

    def recompute(self, evidence, of):
        return self.asked().prove(evidence, **of.about)

    def realised(self, of, questions):
        return share_of("right answers", of.best_correct, 1 - self.least)

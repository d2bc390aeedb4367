"""What may answer before a reference does: rows of cheaper models, in three families.

Where an answer that is not given costs the reference's price, what answers most is not what costs
least. Each family has a share of delta, fixed here, and training questions say which of its
candidates is proved at it (`recommendation.selective_trials`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.evidence.shortlist import shortlist
from farthing.methods.selective.confidence import AnswerAgreement, OwnConfidence
from farthing.methods.selective.learner import (
    Buying,
    Fit,
    PassedTo,
    SelectiveFit,
    by_votes,
    learn,
)
from farthing.methods.selective.policy import FixedRow
from farthing.methods.selective.single_models import FEW, names_of, of_lines, sure_of_themselves
from farthing.traces.arrays import TraceArrays

ROW = 3
"""The most models in a row."""


@dataclass(frozen=True)
class Family:
    """Candidates of one kind, of which one is proved."""

    share: Fraction
    """Of delta."""
    candidates: tuple[SelectiveFit, ...]


def families(train: TraceArrays, alpha: Fraction, passed: PassedTo) -> list[Family]:
    """Return the families that can run, the one of the largest share first.

    Rows of up to three cheaper models, each asked only where those before are not sure enough, by a
    mixture of who agrees and how sure each is; what learns no weights: single models by their own
    confidence, and the cheapest few by their agreement; and the reference by itself, which costs no
    more than it does today and still says what it is not sure of.

    Args:
        train: a pool as a cascade, of calls that saw one another nowhere.
        alpha: the share of wrong answers that is to be promised.
        passed: the reference, which answers what is not answered.
    """
    names, confident = names_of(train), sure_of_themselves(train)
    price, right = of_lines(train.cost_nano, train), of_lines(train.correct, train)
    last = passed.call
    price_of = price.mean(axis=0) / max(float(price[:, last].mean()), 1.0)
    short = shortlist(price_of, right.mean(axis=0), last)

    def of(row: Sequence[int], fit: Fit, how: str) -> SelectiveFit:
        asked = " and ".join(names[line] for line in row)
        buying = Buying(FixedDepthPolicy(max(row) + 1), "argmax", FixedRow("calls", tuple(row)))
        return learn(buying, train, alpha, fit, f"{asked}, by {how}", passed)

    rows = [row for length in range(1, ROW + 1) for row in combinations(short, length)]
    learned = [of(row, by_votes, "a mixture") for row in rows]
    alone = [
        of((line,), lambda *_: OwnConfidence(), "its confidence")
        for line in short
        if line in confident
    ]
    agreeing = [
        of(short[:few], lambda *_: AnswerAgreement(), "agreement")
        for few in FEW
        if few <= len(short)
    ]
    itself = (
        of((last,), lambda *_: OwnConfidence(), "its confidence")
        if last in confident
        else of((*short[:1], last), by_votes, "a mixture")
    )
    every = [
        Family(Fraction(3, 5), tuple(learned)),
        Family(Fraction(3, 10), (*alone, *agreeing)),
        Family(Fraction(1, 10), (itself,)),
    ]
    return [family for family in every if family.candidates]

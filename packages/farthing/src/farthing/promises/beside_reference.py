"""What parity and agreement share: answers held against a reference, which answers if unproved."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar, get_args

import numpy as np

from farthing.errors import InputError
from farthing.promises.base import Per, Promise
from farthing.promises.certificate import IntArray
from farthing.promises.chains import SideBySidePayload
from farthing.promises.levels import Level, Margin, exact_margin
from farthing.promises.observed import Facts, PlayedPoints
from farthing.promises.statistics.fixed_sequence import cheapest
from farthing.promises.statistics.power import Rates, forecast
from farthing.promises.texts import REALISED, Goal, PromiseOption

if TYPE_CHECKING:
    from farthing.promises.agreeing import Agreeing
    from farthing.promises.paired import Paired

E = TypeVar("E", "Paired", "Agreeing")

TOO_DEAR = "What is proved costs as much as the reference alone."
ROOM = 0.2
"""What is further below the line than that would flatten a plot."""
EPSILON = "--epsilon 0.02, the accuracy that may be lost or the share answered otherwise"
WITH_WHOM = PromiseOption(
    "reference",
    "with whom; by default the role right most often in training.",
    "role",
    commands=("calibrate", "compare", "grade"),
)
COUNTED = PromiseOption(
    "per",
    "a question that is asked again counts once, or as often as it is asked (request). By default "
    "once.",
    "per",
    commands=("calibrate", "recommend"),
)


class BesideReference(Promise):
    """A promise that answers are close to a reference's, at the cheapest point that is proved."""

    held_to_reference: ClassVar[bool] = True
    if TYPE_CHECKING:
        epsilon: Level

    @property
    def margin(self) -> Margin:
        """What may be lost against the reference, exactly."""
        return exact_margin(self.epsilon)

    @property
    def every_request(self) -> bool:
        """Whether a question counts as often as it was asked."""
        return self.per == "request"

    @property
    def otherwise(self) -> str:  # type: ignore[override]
        """Ask the reference."""
        return f"ask {self.reference} for everything, or record more questions"

    def beside(self, role: str | None) -> Self:
        """Return the promise with its reference named."""
        return replace(self, reference=role)  # type: ignore[type-var]

    def sharing(self, share: Fraction) -> Self:
        """Return the promise at a share of delta."""
        return replace(self, share=share)  # type: ignore[type-var]

    def counting(self, per: Per) -> Self:
        """Return a promise that counts questions, or requests."""
        return replace(self, per=per)  # type: ignore[type-var]

    def shown(self, title: str, name: str, level: str, asked: str) -> Goal:
        """Return how its figure is shown."""
        line = self.line or 0.0
        return Goal(
            title,
            REALISED,
            name,
            line,
            level,
            asked,
            line - ROOM,
            self.beside_metric,
            of_alpha=False,
        )

    def prover(
        self, points: PlayedPoints, questions: Facts, n: int
    ) -> Callable[[IntArray], int | None]:
        """Return what proves a point by n of the questions: by counts of losses and wins alone.

        Up to 300 questions it is the exact proof; beyond, as `allows` says.
        """
        if questions.right is None:
            raise RuntimeError("parity and agreement are with a reference")
        allowed, theirs, spent = self.allows(n), self.bars(questions.right), points.spent
        alone = None if self.may_cost_more else questions.alone_nano

        def proved(rows: IntArray) -> int | None:
            correct, bar = points.correct[rows], theirs[rows][:, None]
            lost, won = (bar & ~correct).sum(axis=0), (~bar & correct).sum(axis=0)
            few = lost <= np.array([allowed(int(number)) for number in won])
            held = np.flatnonzero(np.logical_and.accumulate(few[::-1])[::-1])
            return cheapest(held, spent[rows], None if alone is None else alone[rows])

        return proved


class BesideReferencePayload(SideBySidePayload, frozen=True, kw_only=True):
    """What a certificate keeps of such a promise."""

    if TYPE_CHECKING:
        reference: str | None

    @property
    def held_to(self) -> str | None:
        """The reference."""
        return self.reference

    @property
    def fallback(self) -> str | None:
        """The reference, which answers everything where nothing is proved."""
        return self.reference


def named(reference: str | None, roles: Sequence[str]) -> str:
    """Return the reference's role."""
    if reference is None:
        raise InputError(
            "not all answers are graded, so nobody knows who is right most often; name the "
            f"reference, one of {', '.join(roles)}"
        )
    return reference


def check_named(reference: object, per: object) -> None:
    """Refuse a reference that is no name, and what cannot be counted."""
    if reference is not None and not isinstance(reference, str):
        raise InputError(
            f"the reference is {reference!r}; name a role of the traces, or leave it out"
        )
    if per not in get_args(Per):
        raise InputError(f"per is {per!r}; give 'question' or 'request'")


def forecast_beside(
    evidence: E,
    proved: Callable[[E], int | None],
    rates: Callable[[E], Rates],
    levels: tuple[Fraction, Fraction],
    n: int,
) -> str:
    """Say what would probably be proved, or that what is proved costs as much as the reference.

    Args:
        evidence: what proved nothing.
        proved: the point that some evidence proves.
        rates: how often questions were lost.
        levels: epsilon and delta.
        n: how many questions there were.
    """
    less, theirs = evidence.cheaper(), evidence.reference_nano
    unproved = proved(replace(evidence, reference_nano=None)) is None
    if less is None or theirs is None:
        return forecast(rates(evidence), "epsilon", *levels, n) if unproved else TOO_DEAR
    saved = 1 - int(less.cost_nano[:, -1].sum()) / int(theirs.sum())
    said = forecast(rates(less), "epsilon", *levels, n, saved)
    return said if unproved else f"{TOO_DEAR} {said}"

"""What a bandit is: it says how likely each model is to be asked, and learns from the grade.

Nothing is recorded yet. `begin` names the models (arms) and the money; for each question `choose`
draws one, and `settle` hands back its grade and its cost. Beside the bandit's own view three rules
hold, whatever it says:

* **Never over budget.** An arm takes part only where the most that it can cost fits what is left;
  so much is reserved.
* **Every arm keeps a floor.** Among those that take part none is less likely than `floor`, and the
  probability with which an arm was drawn is part of the choice. So the record says what any other
  policy would have come to (`off_policy`).
* **Money has a price**, that of dual descent (`budgets.pacing.dual_descent`): a bandit sees what
  asking an arm takes from later questions, its toll, in right answers.

Nothing is kept here: sessions go in and come out. Grades may come late and in any order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from farthing.budgets.pacing import base as pacing
from farthing.budgets.pacing.base import Option
from farthing.budgets.pacing.dual_descent import FOLLOWING
from farthing.errors import InputError
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.features.question import HASHED, word_vectors

FLOOR = 0.01
"""Least probability of an arm that can be paid for; ours."""
PRIOR_CALLS = 5
"""As many calls as the expected cost of an arm counts for, beside what calls cost; ours."""
WORDS, GROUPS = 16, 32
DIMENSIONS = 1 + WORDS + GROUPS


@dataclass(frozen=True)
class Arm:
    """A model that can be asked."""

    name: str
    expected_nano: int
    """What a call should cost by its price list, in nano-dollars; calls correct it."""
    largest_nano: int
    """The most that a call can cost, in nano-dollars; so much is reserved."""


@dataclass(frozen=True)
class BanditContext:
    """What a bandit knows of a question before it is asked."""

    features: FloatArray
    """[d] of the question."""
    offered: BoolArray
    """[K] which arms take part; at least one."""
    toll: FloatArray
    """[K] what asking an arm takes from later questions, in right answers."""


@dataclass(frozen=True)
class GradedDraw:
    """What became of a question."""

    seen: BanditContext
    arm: int
    propensities: FloatArray
    """[K] with which probability each arm could be drawn."""
    grade: float
    """0 to 1: 1 where the answer is right."""


class Bandit(Protocol):
    """What a card of kind `bandit` makes: pure functions of what was learned.

    What was learned is the bandit's own frozen record, handed to it again each time.
    """

    @property
    def reads_questions(self) -> bool:
        """Whether propensities depend on the question's features."""
        ...

    def begin(self, arms: int, dimensions: int) -> Any:
        """Return what is known before the first question."""
        ...

    def propensities(self, learned: Any, seen: BanditContext, /) -> FloatArray:
        """Return [K] probabilities: 0 where an arm is not offered, 1 in all."""
        ...

    def learn(self, learned: Any, lesson: GradedDraw, /) -> Any:
        """Return what is known after a grade."""
        ...


@dataclass(frozen=True)
class BanditSession:
    """Where a stream of questions stands."""

    arms: tuple[Arm, ...]
    day: pacing.PacingState
    """The money: budget, spent, reserved, price."""
    learned: Any
    floor: float
    calls: IntArray
    """[K] how many calls were settled."""
    paid_nano: IntArray
    """[K] what they cost, in nano-dollars."""

    @property
    def cost_nano(self) -> FloatArray:
        """[K] what a call costs on average, as far as known: price list and calls together."""
        listed = np.array([arm.expected_nano for arm in self.arms], dtype=np.float64)
        return (PRIOR_CALLS * listed + self.paid_nano) / (PRIOR_CALLS + self.calls)


@dataclass(frozen=True)
class ArmChoice:
    """Whom to ask."""

    arm: int
    name: str
    propensity: float
    """With which probability it was drawn; record it with the answer."""
    propensities: FloatArray
    """[K] those of all arms."""
    least: float
    """What `propensity` could not fall below, whatever the question; `off_policy` needs it."""
    seen: BanditContext
    option: Option
    """What is reserved."""
    session: BanditSession
    """Where the stream stands with that reserved."""

    @property
    def floor(self) -> float:
        """What no arm could fall below, whatever the question; 0 where one could not be drawn."""
        return self.session.floor if self.seen.offered.all() else 0.0


def begin(
    bandit: Bandit,
    arms: Sequence[Arm],
    budget_nano: int,
    questions: int,
    dimensions: int,
    floor: float = FLOOR,
) -> BanditSession:
    """Return where a stream begins.

    Args:
        bandit: who learns.
        arms: at least one.
        budget_nano: for all questions together.
        questions: how many are expected; a guess.
        dimensions: d, the number of features of a question.
        floor: least probability of an arm that can be paid for.

    Raises:
        InputError: there is no arm, an arm's costs are not in order, or the floors add up to more
            than 1.
    """
    if not arms:
        raise InputError("there is nobody to ask; give at least one model")
    for arm in arms:
        if not 0 <= arm.expected_nano <= arm.largest_nano:
            raise InputError(
                f"{arm.name} is expected to cost {arm.expected_nano} nano-dollars and "
                f"{arm.largest_nano} at most; both have to be 0 or more, in this order"
            )
    if not 0.0 < floor * len(arms) <= 1.0:
        raise InputError(
            f"each of {len(arms)} models is to be asked with probability {floor:g} at least; "
            f"give a floor above 0 and at most {1 / len(arms):g}"
        )
    none = np.zeros(len(arms), dtype=np.int64)
    day = pacing.begin(FOLLOWING, budget_nano, questions)
    return BanditSession(tuple(arms), day, bandit.begin(len(arms), dimensions), floor, none, none)


def choose(
    bandit: Bandit,
    session: BanditSession,
    features: FloatArray,
    rng: np.random.Generator,
    offered: BoolArray | None = None,
) -> ArmChoice | None:
    """Draw the arm that a question goes to, and reserve the most that it can cost.

    Args:
        bandit: who learns.
        session: where the stream stands.
        features: [d] of the question.
        rng: draws; the only chance there is.
        offered: [K] which arms could answer it; None: all.

    Returns:
        The choice; None where no arm fits what is left.

    Raises:
        ValueError: the bandit's propensities are none.
    """
    day, k = session.day, len(session.arms)
    fits = np.array([arm.largest_nano <= day.left_nano for arm in session.arms])
    some = fits if offered is None else fits & offered
    if not some.any():
        return None
    now = min(1.0, day.settled / day.requests)
    price = FOLLOWING.price(day, now)
    seen = BanditContext(features, some, price / day.share_nano * session.cost_nano)
    raw = bandit.propensities(session.learned, seen)
    one = raw.shape == (k,) and (raw >= 0.0).all() and abs(raw.sum() - 1.0) <= 1e-9
    if not one or raw[~some].any():
        raise ValueError(f"these are no probabilities of {k} arms: {raw}")
    chances = np.where(some, session.floor + (1.0 - session.floor * some.sum()) * raw, 0.0)
    arm = min(int(np.searchsorted(np.cumsum(chances), rng.random(), side="right")), k - 1)
    while not some[arm]:  # where rounding leaves the sum below the draw
        arm -= 1
    alike = not bandit.reads_questions and (offered is None or bool(offered.all()))
    least = float(chances[arm]) if alike else session.floor
    asked = session.arms[arm]
    option = Option(0.0, asked.expected_nano, asked.largest_nano, proved=False)
    reserved = pacing.choose(FOLLOWING, day, [option], now)
    if reserved is None:
        raise ValueError(f"{asked.name} does not fit what is left")
    after = replace(session, day=reserved.state)
    return ArmChoice(arm, asked.name, float(chances[arm]), chances, least, seen, option, after)


def settle(
    bandit: Bandit, session: BanditSession, choice: ArmChoice, grade: float | None, cost_nano: int
) -> BanditSession:
    """Learn what became of a question, and put its cost in place of the reservation.

    Args:
        bandit: who learns.
        session: where the stream stands now, which need not be where the choice left it.
        choice: what was chosen.
        grade: 0 to 1; None: nobody said, and only the cost is learned.
        cost_nano: what the call cost.

    Raises:
        InputError: the grade is no number from 0 to 1.
        ValueError: the cost is negative, or no such reservation is open.
    """
    if grade is not None and not 0.0 <= grade <= 1.0:
        raise InputError(f"the grade is {grade}; it has to be 0 to 1")
    day = session.day
    now = min(1.0, (day.settled + 1) / day.requests)
    learned = session.learned
    if grade is not None:
        lesson = GradedDraw(choice.seen, choice.arm, choice.propensities, grade)
        learned = bandit.learn(learned, lesson)
    one = np.arange(len(session.arms)) == choice.arm
    return replace(
        session,
        day=pacing.settle(FOLLOWING, day, choice.option, cost_nano, now),
        learned=learned,
        calls=session.calls + one,
        paid_nano=session.paid_nano + one * cost_nano,
    )


def release(session: BanditSession, choice: ArmChoice) -> BanditSession:
    """Give a reservation back: nothing was sent, and nothing is learned from it."""
    return replace(session, day=pacing.release(session.day, choice.option))


def features_of(text: str, group: str = "") -> FloatArray:
    """Return [d] a constant, the question's words and its group; the last two of length 1 each.

    Hashed words are folded once more, so that a regression with a few hundred grades can use them.

    >>> features_of("What is 4 + 3?", "sums").shape == (DIMENSIONS,)
    True
    """
    return np.concatenate([[1.0], _folded(text, WORDS), _folded(f"group {group}", GROUPS)])


def _folded(text: str, dimensions: int) -> FloatArray:
    folded = word_vectors([text])[0].reshape(HASHED // dimensions, dimensions).sum(axis=0)
    length = float(np.sqrt((folded * folded).sum()))
    found: FloatArray = folded / length if length > 0.0 else folded
    return found

"""What a pacer is: it sets the price of a dollar, so that a day's budget lasts the day.

A request can be answered in several settings. `choose` takes the one with the largest

    value - price * expected cost

among those whose largest cost fits what is left, whatever the pacer says; so no pacer can go beyond
the budget. `settle` puts the real cost in place of the reservation, and the pacer sets a new price.

Nothing is kept here: states come in and go out. Workers that share a state keep it in one row and
replace it in the transaction that read it, or compare and swap; then reservations add up, and the
budget holds whoever asks. Requests may be settled late and in any order: the sums come out the
same, and until then prices are those of what was settled before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Protocol, runtime_checkable

import msgspec

from farthing.budgets.ledger import checked
from farthing.errors import InputError
from farthing.money import dollars


@dataclass(frozen=True)
class Option:
    """One setting that a request can be answered in."""

    value: float
    """What an answer is worth, such as the lower bound on accuracy that was calibrated; 0 to 1."""
    expected_nano: int
    """What it costs on average, in nano-dollars."""
    largest_nano: int
    """The most that it can cost, in nano-dollars; so much is reserved."""
    proved: bool = True
    """Whether the certificate holds in this setting: it is one of those proved together."""

    def __post_init__(self) -> None:
        """Refuse what cannot be compared.

        Raises:
            InputError: the value is not within 0 and 1, or the costs are not in order.
        """
        if not 0.0 <= self.value <= 1.0:
            raise InputError(f"an option is worth {self.value}; its value has to be 0 to 1")
        if not 0 <= self.expected_nano <= self.largest_nano:
            raise InputError(
                f"an option costs {dollars(self.expected_nano)} on average and "
                f"{dollars(self.largest_nano)} at most; both have to be $0 or more, in this order"
            )


class PacingState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a day stands; a few numbers, which msgspec writes as JSON and reads again."""

    budget_nano: int
    """The day's budget, in nano-dollars."""
    requests: int
    """How many requests the day is expected to have; a guess."""
    price: float = 0.0
    """Value that an even share of the budget has to bring, as the pacer last set it."""
    spent_nano: int = 0
    """What settled requests cost, in nano-dollars."""
    reserved_nano: int = 0
    """The most that requests under way can cost, in nano-dollars."""
    settled: int = 0
    """How many requests were settled."""

    @property
    def share_nano(self) -> float:
        """An even share of the budget, rho = B / T: what a request may cost on average."""
        return self.budget_nano / self.requests

    @property
    def left_nano(self) -> int:
        """What may still be reserved: at least 0."""
        return max(0, self.budget_nano - self.spent_nano - self.reserved_nano)


@dataclass(frozen=True)
class PacedChoice:
    """The setting that a request is answered in."""

    index: int
    """Its place among the options."""
    option: Option
    """The option itself, which `settle` or `release` needs again."""
    state: PacingState
    """Where the day stands with its largest cost reserved."""

    @property
    def keeps_promise(self) -> bool:
        """Whether the certificate holds for the reply; if not, it carries `promise: none`."""
        return self.option.proved


class Pacer(Protocol):
    """What is registered under `farthing.pacers`: pure functions of a state.

    Prices are per even share of the budget, so that they mean the same whatever the currency of
    costs: at a price of 0.1 an option that costs a share more has to be worth 0.1 more.

    It may also say its `meaning`, one line, and the arXiv id of its `paper`; `farthing methods`
    lists them.
    """

    def first_price(self) -> float:
        """Return the price that a day begins with, where no earlier day says better."""
        ...

    def price(self, state: PacingState, now: float, /) -> float:
        """Return the price at a share `now` of the day, 0 to 1; finite and at least 0."""
        ...

    def settled(self, state: PacingState, spent_nano: int, now: float, /) -> float:
        """Return the price to keep after a request that cost so much, which `state` includes."""
        ...


@runtime_checkable
class Foresighted(Pacer, Protocol):
    """A pacer that knows what more money would bring the requests to come, however much it is.

    A price says it of the next dollar. Where few requests are left, a dear option takes so much of
    what they have that one price does not tell what they lose; then `choose` asks for it.
    """

    def forgone(self, state: PacingState, nano: int, now: float, /) -> float:
        """Return what the requests after this one lose where this one costs so many nano-dollars.

        Args:
            state: where the day stands, before this request has reserved anything.
            nano: 0 or more.
            now: as for `price`.
        """
        ...


def begin(
    pacer: Pacer, budget_nano: int, requests: int, yesterday: PacingState | None = None
) -> PacingState:
    """Return the state of a day that begins; with yesterday's, it begins at yesterday's price.

    Raises:
        InputError: there is no budget, or no request is expected.
    """
    if budget_nano < 1 or requests < 1:
        raise InputError(
            f"a day has {dollars(budget_nano)} for {requests} requests; a pacer needs a budget "
            "above $0 and at least 1 request"
        )
    price = pacer.first_price() if yesterday is None else yesterday.price
    return PacingState(budget_nano=budget_nano, requests=requests, price=price)


def choose(
    pacer: Pacer, state: PacingState, options: Sequence[Option], now: float
) -> PacedChoice | None:
    """Choose a setting for a request and reserve the most that it can cost.

    A pacer refuses nothing by itself. Who would rather refuse than spend adds an option that costs
    and brings nothing.

    Args:
        pacer: who sets the price.
        state: where the day stands.
        options: at least one, the cheapest first, which wins where two are as good.
        now: the share of the day's requests that have usually come by now; the share of the day
            that is gone where that is not known. What is beyond 0 and 1 counts as 0 and 1.

    Returns:
        The choice; None where not even the cheapest fits what is left.

    Raises:
        InputError: there is no option, or the pacer's price is none.
    """
    if not options:
        raise InputError("there is nothing to choose from; give at least one option")
    price = pacer.price(state, _within(now))
    if not (isfinite(price) and price >= 0.0):
        raise InputError(f"the pacer's price is {price}; it has to be finite and at least 0")
    fitting = [at for at, option in enumerate(options) if option.largest_nano <= state.left_nano]
    if not fitting:
        return None
    lost = [_lost(pacer, state, options[at].expected_nano, price, now) for at in fitting]
    gain = [options[at].value - less for at, less in zip(fitting, lost, strict=True)]
    best = fitting[gain.index(max(gain))]
    return PacedChoice(best, options[best], _reserve(state, options[best].largest_nano))


def settle(
    pacer: Pacer, state: PacingState, option: Option, spent_nano: int, now: float
) -> PacingState:
    """Put what a request really cost in place of its reservation, and set the price anew.

    Args:
        pacer: who sets the price.
        state: where the day stands now, which need not be where the choice left it.
        option: the one chosen.
        spent_nano: what it cost. More than its largest cost, which only a wrong price table makes
            possible, is counted in full.
        now: as for `choose`.

    Raises:
        ValueError: the cost is negative, or no such reservation is open.
    """
    released = release(state, option)
    after = msgspec.structs.replace(
        released,
        spent_nano=released.spent_nano + checked(spent_nano),
        settled=released.settled + 1,
    )
    return msgspec.structs.replace(after, price=pacer.settled(after, spent_nano, _within(now)))


def release(state: PacingState, option: Option) -> PacingState:
    """Give a reservation back: nothing was sent, and nothing is learned from it.

    Raises:
        ValueError: no such reservation is open.
    """
    if option.largest_nano > state.reserved_nano:
        raise ValueError(f"no reservation of {dollars(option.largest_nano)} is open")
    return _reserve(state, -option.largest_nano)


def _lost(pacer: Pacer, state: PacingState, nano: int, price: float, now: float) -> float:
    if isinstance(pacer, Foresighted):
        return pacer.forgone(state, nano, _within(now))
    return price / state.share_nano * nano


def _reserve(state: PacingState, nano: int) -> PacingState:
    return msgspec.structs.replace(state, reserved_nano=state.reserved_nano + nano)


def _within(now: float) -> float:
    return min(max(now, 0.0), 1.0)

"""A proportional controller: the further spending is ahead of the day, the dearer a dollar."""

from dataclasses import dataclass

from farthing.budgets.pacing.base import PacingState


@dataclass(frozen=True)
class Proportional:
    """Sets the price in proportion to the lead of spending over the day.

        price = gain * [spent / B - now]+ / (1 - spent / B)

    The lead is taken relative to the share of the budget that is left, so that the same lead counts
    more late in the day. Without a lead a dollar has no price, and the best setting is chosen.

    It remembers nothing beside what was spent. So requests that are settled late or in another
    order lead to the same price, and a wrong guess of the day's requests hardly matters. As with
    any proportional controller a steady price needs a steady lead: spending runs ahead of the day
    by about price / gain of what is left.

    Source: textbook control (Astrom and Murray, "Feedback Systems", 2008, chapter 10), on a price;
    the formula is ours.

    >>> pacer = Proportional(gain=10.0)
    >>> half = PacingState(budget_nano=1_000, requests=10, spent_nano=500)
    >>> pacer.price(half, 0.5), pacer.price(half, 0.4)
    (0.0, 2.0)
    """

    gain: float = 10.0
    """Price at a lead as large as what is left; ours."""
    meaning: str = "A dollar is the dearer the further spending is ahead of the day"
    """What `farthing methods` says of it."""

    def first_price(self) -> float:
        return 0.0

    def price(self, state: PacingState, now: float, /) -> float:
        """Return the formula above; of a budget that is spent, as if one nano-dollar was left."""
        lead_nano = max(0.0, state.spent_nano - now * state.budget_nano)
        return self.gain * lead_nano / max(1, state.budget_nano - state.spent_nano)

    def settled(self, _state: PacingState, _spent_nano: int, _now: float, /) -> float:
        return self.first_price()


PROPORTIONAL = Proportional()
"""The pacer `proportional`."""

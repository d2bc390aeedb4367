"""Dual mirror descent: the price follows what each request cost more than its even share.

With rho = B / T, a request t with values f_t and costs b_t, and the price mu:

    x_t = argmax f_t(x) - mu b_t(x)                  `choose`; among what fits the budget
    g   = rho - b_t(x_t)
    mu <- [mu - eta g]+         Euclidean,   or
    mu <- mu exp(-eta g)        entropy,             with eta ~ 1 / sqrt(T)

Costs and rho are measured here in even shares, b / rho and 1, so that eta has no unit. Against the
best that hindsight could do, regret grows as sqrt(T) where requests are drawn alike, and the budget
is never exceeded. Where x_t does not fit, the paper answers nothing; `choose` takes the next best.
That can be nothing, where nothing is an option.

T is a guess, and rho stands or falls with it: with twice the requests the money is gone halfway.
Where `follow` is set, T is learned from the requests so far, and rho is what is left for the rest:

    T_t   = T (w + settled / T) / (w + now)          the guess counts as a share w of a day
    rho_t = (B - spent) / (T_t (1 - now)),           at most 4 rho

which comes right whatever T was. This is ours; the bound on regret was not proved for it.

Steps add up (Euclidean) or multiply (entropy), so that requests may be settled in any order. Only
where a bound of the price acts in between does the order matter, by as much as was cut off there;
and a little with `follow`, since rho_t is that of the moment.

Source: Balseiro, Lu and Mirrokni 2020, "The Best of Many Worlds: Dual Mirror Descent for Online
Allocation Problems" (arXiv 2011.10124), algorithm 1.
"""

from dataclasses import dataclass
from math import exp, log, sqrt

from farthing.budgets.pacing.base import PacingState

PAPER = "2011.10124"
LEAST, MOST = 1e-3, 1e3
"""Bounds of a price that is multiplied, which would not come back from 0 or infinity; ours."""
FIRST = 0.1
"""Price that a day begins with: a tenth of what a right answer is worth, for a share; ours."""


GUESS_WEIGHT = 0.1
"""w: how much of a day has to pass before requests say as much as the guess; ours."""
MOST_SHARES = 4.0
"""Bound of rho_t, in even shares, which grows without one at the end of a quiet day; ours."""


def gradient(state: PacingState, spent_nano: int) -> float:
    """Return g in even shares: how much less than its share a request cost, 1 - b / rho.

    >>> gradient(PacingState(budget_nano=1_000, requests=10), 300)
    -2.0
    """
    return 1.0 - spent_nano / state.share_nano


def surplus(state: PacingState, now: float) -> float:
    """Return (rho_t - rho) / rho: by how much more than an even share a request may cost now.

    >>> half = PacingState(budget_nano=1_000, requests=10, spent_nano=500, settled=5)
    >>> surplus(half, 0.5), surplus(half, 1.0)
    (0.0, 3.0)
    """
    left = max(0.0, 1.0 - state.spent_nano / state.budget_nano)
    requests = (GUESS_WEIGHT + state.settled / state.requests) / (GUESS_WEIGHT + now)
    to_come = requests * (1.0 - now)
    return min(left, MOST_SHARES * to_come) / to_come - 1.0 if to_come else MOST_SHARES - 1.0


class _Descent:
    """What all of them have in common: the price is the last one that was settled."""

    def first_price(self) -> float:
        return FIRST

    def price(self, state: PacingState, _now: float, /) -> float:
        return state.price


@dataclass(frozen=True)
class EuclideanDescent(_Descent):
    """Adds a step to the price: mu <- [mu - eta g]+.

    >>> pacer = EuclideanDescent()
    >>> day = PacingState(budget_nano=1_000, requests=100, price=0.25)
    >>> [pacer.settled(day, cost, 0.0) for cost in (20, 10, 0)]
    [0.35, 0.25, 0.15]
    """

    step: float = 1.0
    """eta * sqrt(T)."""
    meaning: str = "After each request the price rises by what it cost more than its share"
    """What `farthing methods` says of it."""
    paper: str = PAPER
    """arXiv id."""

    def settled(self, state: PacingState, spent_nano: int, _now: float, /) -> float:
        """Return mu after a step."""
        moved = -self.step / sqrt(state.requests) * gradient(state, spent_nano)
        return max(0.0, state.price + moved)


@dataclass(frozen=True)
class EntropyDescent(_Descent):
    """Multiplies the price by a step: mu <- mu exp(-eta g), kept within `LEAST` and `MOST`.

    >>> pacer = EntropyDescent()
    >>> day = PacingState(budget_nano=1_000, requests=100, price=0.25)
    >>> [round(pacer.settled(day, cost, 0.0), 4) for cost in (20, 10, 0)]
    [0.2763, 0.25, 0.2262]
    """

    step: float = 1.0
    """eta * sqrt(T)."""
    follow: bool = False
    """Whether rho is what is left for the requests that are still to come."""
    meaning: str = "The same, in proportion to the price"
    """What `farthing methods` says of it."""
    paper: str = PAPER
    """arXiv id."""

    def settled(self, state: PacingState, spent_nano: int, now: float, /) -> float:
        """Return mu after a step."""
        g = gradient(state, spent_nano) + (surplus(state, now) if self.follow else 0.0)
        moved = -self.step / sqrt(state.requests) * g
        return state.price * exp(min(max(moved, log(LEAST / state.price)), log(MOST / state.price)))


EUCLIDEAN = EuclideanDescent()
"""The pacer `dual-descent`."""
ENTROPY = EntropyDescent()
"""The pacer `dual-descent-entropy`."""
FOLLOWING = EntropyDescent(
    follow=True, meaning="The same, and the number of requests is learned as they come"
)
"""The pacer `dual-descent-following`."""

"""Several candidates proved side by side: who has which share of delta, and what passes on.

Each candidate is a chain of operating points, tested in an order fixed before, at its share of
delta. A chain whose points are all proved needs its share no longer: it passes to the others, in
proportion to the shares that these began with, and a waiting one goes on at its first unproved
point. Any false proof happens with probability at most delta, so any proved point may be chosen.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Self, TypedDict

import msgspec
from msgspec import structs

from farthing.promises import wording
from farthing.promises.levels import exact_text
from farthing.promises.payload import Recorded


class Chain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of the candidates that were proved side by side."""

    name: str
    share: Fraction
    """Of delta, as it was fixed before anything was tested."""
    passed: bool
    """Whether all its points were proved, so that its share passed on."""


def prove_all(
    shares: Sequence[Fraction], prove: Callable[[int, Fraction], bool]
) -> tuple[list[Fraction], list[bool]]:
    """Test chains until nothing passes on; return the share each ended with, and which passed.

    Args:
        shares: of delta, one a chain; at most 1 together.
        prove: tests a chain at a share, and returns whether all its points are proved.

    Raises:
        ValueError: the shares add up to more than 1.

    Source: the graphical procedure of Bretz et al. 2009. Its weights are in proportion to the
    initial shares, and stay so when a chain is removed.

    >>> third = Fraction(1, 3)
    >>> shares, passed = prove_all([third] * 3, lambda place, share: place == 0)
    >>> [str(share) for share in shares], passed
    (['1/3', '1/2', '1/2'], [True, False, False])
    """
    whole = sum(shares, Fraction(0))
    if whole > 1:
        raise ValueError("the shares of delta add up to more than 1")
    now, passed = list(shares), [False] * len(shares)
    while True:
        before = list(passed)
        for place, share in enumerate(now):
            passed[place] = passed[place] or prove(place, share)
        if passed == before:
            return now, passed
        waiting = [place for place, done in enumerate(passed) if not done]
        left = sum((shares[place] for place in waiting), Fraction(0))
        for place in waiting:
            now[place] = shares[place] * whole / left


class Shared(TypedDict):
    """How a certificate says which share of delta its candidate had."""

    shared_by: int | None
    delta_share: Fraction | None


def shared(share: Fraction) -> Shared:
    """Return what a certificate says of a share of delta.

    >>> shared(Fraction(1)), shared(Fraction(1, 2))
    ({'shared_by': None, 'delta_share': None}, {'shared_by': 2, 'delta_share': None})
    >>> shared(Fraction(7, 20))
    {'shared_by': None, 'delta_share': Fraction(7, 20)}
    """
    if share.numerator == 1:
        return Shared(shared_by=share.denominator if share < 1 else None, delta_share=None)
    return Shared(shared_by=None, delta_share=share)


class SideBySidePayload(Recorded, frozen=True, kw_only=True):
    """What a certificate keeps of a promise that several candidates may be proved for at once."""

    delta: Fraction
    """How often the promise may fail over calibration draws."""
    shared_by: int | None = None
    """How many candidates were proved side by side, each at an equal share of delta; None: one has
    all of it, or shares differ."""
    delta_share: Fraction | None = None
    """Of delta, where several were proved side by side at shares that differ."""
    chains: tuple[Chain, ...] = ()
    """All candidates that were proved side by side; none where one has all of delta."""

    @property
    def own_delta(self) -> Fraction:
        """What of delta it was proved at, where several were proved side by side."""
        return self.delta * (self.delta_share or Fraction(1, self.shared_by or 1))

    def among(self, chains: Sequence[Chain]) -> Self:
        """Return it with the candidates that were proved side by side."""
        share = self.own_delta / self.delta
        return structs.replace(self, chains=tuple(chains), shared_by=None, delta_share=share)

    def side_by_side(self) -> str:
        """Say at which share of delta it was proved, and what passed on to it."""
        share = wording.side_by_side(self.shared_by, self.delta_share, len(self.chains))
        return share + passed_on(self.chains)


def passed_on(chains: Sequence[Chain]) -> str:
    """Say which candidates passed their shares on, as a sentence; empty where none did.

    >>> half = Fraction(1, 2)
    >>> print(passed_on([Chain(name="a", share=half, passed=True),
    ...                  Chain(name="b", share=half, passed=False)]))
     Every point of a is proved, so that its 0.5 of it passed to the others.
    """
    done = [chain for chain in chains if chain.passed]
    if not done or len(done) == len(chains):
        return ""
    names = " and ".join(chain.name for chain in done)
    share = exact_text(sum((chain.share for chain in done), Fraction(0)))
    return f" Every point of {names} is proved, so that its {share} of it passed to the others."

"""Which requests chance draws for an audit or for exploration."""

from dataclasses import dataclass
from hashlib import blake2b

_KEY = b"farthing audits"


@dataclass(frozen=True)
class Draw:
    """What came of a draw."""

    audited: bool
    explored: bool


def draw(trace: str, audit: float, explore: float) -> Draw:
    """Draw a request: by the mark of its trace alone, which nothing in the request has chosen.

    Of all requests a share `audit` is audited; of the others so many are explored that their share
    of all is `explore`, as far as there are as many. No request is both.

    Args:
        trace: the id of its trace.
        audit: the probability of an audit.
        explore: the probability of exploration.

    >>> found = [draw(str(k), 0.1, 0.2) for k in range(4_000)]
    >>> sum(one.audited for one in found), sum(one.explored for one in found)
    (422, 816)
    """
    at = lot(trace)
    return Draw(at < audit, audit <= at < audit + explore)


def lot(trace: str, what: str = "") -> float:
    """Return a number in [0, 1) that belongs to a trace: uniform, and the same for everybody.

    Args:
        trace: the id.
        what: what it is for; numbers for different things are independent.
    """
    digest = blake2b(f"{what}\0{trace}".encode(), digest_size=8, key=_KEY).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53

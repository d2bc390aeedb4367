"""What each point that was tested saves on the reference, and what it loses."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from farthing.recommendation.certify import Contender, Proved
from farthing.recommendation.cross_fit import beside
from farthing.recommendation.prove import counted
from farthing.traces.eligibility import draw_weights


class Tradeoff(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a method, on the questions that tested it.

    >>> Tradeoff(method="micp", saved=0.6, lost=0.004, proved=True, chosen=False).to_json()["saved"]
    0.6
    """

    method: str
    saved: float
    """1 - cost / the reference's cost."""
    lost: float
    """The reference's accuracy (of agreement: 1) less its own."""
    proved: bool
    """Whether the promise is proved of it."""
    chosen: bool
    """Whether it is what is recommended."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


def tradeoffs(
    tested: Iterable[tuple[Contender, Proved]], chosen: Contender
) -> tuple[Tradeoff, ...]:
    """Return what was tested, of each method from the cheapest point to the most expensive.

    Left out are points that withhold answers, which lose nothing by that, a reference that is free,
    and questions that chance drew unequally: their plain means are of no mix of questions that
    anybody has.

    Args:
        tested: who took part in the proof, and what came of it.
        chosen: the one that is recommended.
    """
    return tuple(
        point for contender, proof in tested for point in _points(contender, proof, chosen)
    )


def _points(contender: Contender, proof: Proved, chosen: Contender) -> Iterator[Tradeoff]:
    asked, points = contender.asked, proof.points
    if points is None or points.proved is None or asked.withholds:
        return
    recorded = counted(asked, contender.prove).recorded
    right, paid = beside(asked, asked.reference, recorded)
    if not paid.any() or draw_weights(recorded) is not None:
        return
    promised = getattr(proof.certificate.promise, "point", None)
    for place, proved in enumerate(points.proved.tolist()):
        yield Tradeoff(
            method=contender.name,
            saved=1 - int(points.cost_nano[:, place].sum()) / int(paid.sum()),
            lost=(int(right.sum()) - int(points.right[:, place].sum())) / len(right),
            proved=proved,
            chosen=contender is chosen and place == promised,
        )

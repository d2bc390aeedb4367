"""The frontier: what 1,000 requests cost against the share that keeps the promise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.responses import Response

from farthing_gateway.admin.certificate_figures import MOST, Promised, promised
from farthing_gateway.admin.charts import Tick, floor_of, scale
from farthing_gateway.admin.figures import Asked, week
from farthing_gateway.admin.view import View
from farthing_gateway.bundles import ServedMode
from farthing_gateway.monitoring.promises import watched
from farthing_gateway.policies import GatewayPolicy

What = Literal["now", "mode", "alone"]
FEW = 10
"""Graded audits from which on their share is drawn."""


@dataclass(frozen=True)
class Point:
    """Something that may answer a policy's requests."""

    what: What
    """`now`: live replies under the promise in force; `mode`: a bundle as it was proved; `alone`: a
    model."""
    name: str
    nano: float
    """What 1,000 requests cost."""
    share: float | None
    """The share that keeps the promise; None: nobody measured it."""
    says: str
    """Where the figures are from."""
    interval: tuple[float, float] | None = None
    """Of the share, where it is of a sample of live traffic."""
    drawn: bool = True
    """Whether enough was measured for a picture."""


@dataclass(frozen=True)
class PlottedPoint:
    """A point of a chart, in percent from the left and the top."""

    point: Point
    number: int
    x: float
    y: float
    ends: tuple[float, float] | None
    """Of the interval, from the top."""


@dataclass(frozen=True)
class Chart:
    """The points of a policy of which both figures are known."""

    points: tuple[PlottedPoint, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


async def frontier(view: View) -> Response:
    """Show what each policy, mode and model costs and keeps."""
    gateway, since = view.pages.gateway, week(view.now)
    asked = await view.pages.figures.asked(since)
    found = {
        policy.name: points(policy, await _live(view, policy), asked)
        for policy in gateway.chat.policies.values()
    }
    charts = {name: chart(some) for name, some in found.items()}
    return view.show("frontier.html", found=found, charts=charts, policies=gateway.chat.policies)


async def _live(view: View, policy: GatewayPolicy) -> dict[str, Promised]:
    found = {}
    for one in policy.loaded.values():
        certificate = one.certificate
        if certificate is None or one.certificate_id is None:
            continue
        kind = watched(certificate).kind
        since, database = week(view.now), view.pages.database
        delta = view.pages.gateway.config.watch.delta
        live = await promised(database, policy.name, one.certificate_id, kind, since, delta)
        if live is not None:
            found[one.mode] = live
    return found


def points(
    policy: GatewayPolicy, live: Mapping[str, Promised], asked: Sequence[Asked]
) -> list[Point]:
    """Return what is known of a policy, what is live first, then modes, then models alone."""
    found = [_now(mode, one) for mode, one in live.items()]
    modes = policy.loaded.values()
    found += [point for mode in modes if (point := _of_mode(mode)) is not None]
    measured = [point for mode in modes if (point := _of_reference(mode)) is not None]
    found += measured[:1]
    known = {point.name for point in measured}
    found += [
        Point(
            "alone",
            one.model,
            1_000 * one.cost_nano / one.calls,
            None,
            "its calls in the last 7 days; how often it alone keeps the promise is not known",
        )
        for one in asked
        if one.policy == policy.name and one.model not in known
    ]
    return found


def chart(found: Sequence[Point]) -> Chart | None:
    """Return the chart of what is known in both figures; None of fewer than two points."""
    known = [(point, point.share) for point in found if point.share is not None and point.drawn]
    if len(known) < 2:
        return None
    first = floor_of([point.interval[0] if point.interval else share for point, share in known])

    def place(share: float) -> float:
        return 100 * (1 - share) / (1 - first)

    values, most = scale(max(point.nano for point, _ in known) * 1.05)
    drawn = tuple(
        PlottedPoint(
            point,
            number,
            100 * point.nano / most,
            place(share),
            point.interval and (place(point.interval[1]), place(point.interval[0])),
        )
        for number, (point, share) in enumerate(known, start=1)
    )
    shares = [first + (1 - first) * at / 5 for at in range(6)]
    return Chart(
        drawn,
        tuple(Tick(100 * value / most, value) for value in values),
        tuple(Tick(place(share), share) for share in shares),
    )


def _now(mode: str, live: Promised) -> Point:
    newest = "the newest " if live.replies == MOST else ""
    says = (
        f"{newest}{live.replies:,} replies of the last 7 days that carried the promise of the "
        "certificate in force; "
    )
    says += f"the share is of {live.graded:,} graded audits of them"
    drawn = live.graded >= FEW
    if not drawn:
        says += f", which are too few for the picture: it takes {FEW}"
    nano = 1_000 * live.cost_nano / live.replies
    return Point("now", mode, nano, live.share, says, live.interval, drawn)


def _of_mode(mode: ServedMode) -> Point | None:
    value = mode.value
    if value is None:
        return None
    figures = value.yours
    says = f"the bundle on {figures.questions:,} questions of its traces ({value.measure})"
    nano = 1_000 * figures.cost_nano / figures.questions
    return Point("mode", mode.mode, nano, figures.accuracy, says)


def _of_reference(mode: ServedMode) -> Point | None:
    value = mode.value
    if value is None or value.theirs is None or value.reference is None:
        return None
    figures = value.theirs
    says = f"always asked alone, on {figures.questions:,} questions of the traces ({value.measure})"
    nano = 1_000 * figures.cost_nano / figures.questions
    return Point("alone", value.reference, nano, figures.accuracy, says)

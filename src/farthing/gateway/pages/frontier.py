"""The frontier: what 1,000 requests cost against the share that keeps the promise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.responses import Response

from farthing.gateway.completions import NONE
from farthing.gateway.loaded import Loaded
from farthing.gateway.pages.charts import Tick, floor_of, scale
from farthing.gateway.pages.figures import Asked, Kind, week
from farthing.gateway.pages.view import View
from farthing.gateway.policies import GatewayPolicy
from farthing.gateway.watching.base import Kept
from farthing.gateway.watching.promises import PARITY

What = Literal["now", "mode", "alone"]


@dataclass(frozen=True)
class Point:
    """Something that may answer a policy's requests."""

    what: What
    """`now`: live replies under a promise; `mode`: a bundle as it was proved; `alone`: a model."""
    name: str
    nano: float
    """What 1,000 requests cost."""
    share: float | None
    """The share that keeps the promise; None: nobody measured it."""
    says: str
    """Where the figures are from."""


@dataclass(frozen=True)
class Drawn:
    """A point of a chart, in percent from the left and the top."""

    point: Point
    number: int
    x: float
    y: float


@dataclass(frozen=True)
class Chart:
    """The points of a policy of which both figures are known."""

    points: tuple[Drawn, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]


async def frontier(view: View) -> Response:
    """Show what each policy, mode and model costs and keeps."""
    house, since = view.pages.house, week(view.now)
    kept = await view.pages.watch.kept()
    kinds, asked = await view.pages.figures.kinds(since), await view.pages.figures.asked(since)
    found = {
        policy.name: points(policy, kept, kinds, asked) for policy in house.chat.policies.values()
    }
    charts = {name: chart(some) for name, some in found.items()}
    return view.show("frontier.html", found=found, charts=charts, policies=house.chat.policies)


def points(
    policy: GatewayPolicy, kept: Sequence[Kept], kinds: Sequence[Kind], asked: Sequence[Asked]
) -> list[Point]:
    """Return what is known of a policy, what is live first, then modes, then models alone."""
    live = [one for one in kinds if one.policy == policy.name and one.promise != NONE]
    found = []
    if live:
        nano = 1_000 * sum(one.cost_nano for one in live) / sum(one.requests for one in live)
        says = "replies under a promise in the last 7 days; the share is of audited ones"
        found.append(Point("now", "now", nano, _share(policy, kept), says))
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
    known = [(point, point.share) for point in found if point.share is not None]
    if len(known) < 2:
        return None
    first = floor_of([share for _, share in known])
    values, most = scale(max(point.nano for point, _ in known) * 1.05)
    drawn = tuple(
        Drawn(point, number, 100 * point.nano / most, 100 * (1 - share) / (1 - first))
        for number, (point, share) in enumerate(known, start=1)
    )
    shares = [first + (1 - first) * at / 5 for at in range(6)]
    return Chart(
        drawn,
        tuple(Tick(100 * value / most, value) for value in values),
        tuple(Tick(100 * (1 - share) / (1 - first), share) for share in shares),
    )


def _share(policy: GatewayPolicy, kept: Sequence[Kept]) -> float | None:
    """Return the share of audited replies that keep it, of all modes together.

    Parity has none: it is about a difference of accuracies.
    """
    marks = {one.certificate_id for one in policy.loaded.values()}
    some = [
        (one.share, one.replies)
        for one in kept
        if (one.policy, one.group) == (policy.name, None)
        and one.certificate in marks
        and one.kind != PARITY
    ]
    known = [(share, replies) for share, replies in some if share is not None and replies]
    if not known:
        return None
    return sum(share * number for share, number in known) / sum(number for _, number in known)


def _of_mode(mode: Loaded) -> Point | None:
    value = mode.bundle.value
    if value is None:
        return None
    figures = value.yours
    says = f"the bundle on {figures.questions:,} questions of its traces ({value.measure})"
    nano = 1_000 * figures.cost_nano / figures.questions
    return Point("mode", mode.mode, nano, figures.accuracy, says)


def _of_reference(mode: Loaded) -> Point | None:
    value = mode.bundle.value
    if value is None or value.theirs is None or value.reference is None:
        return None
    figures = value.theirs
    says = f"always asked alone, on {figures.questions:,} questions of the traces ({value.measure})"
    nano = 1_000 * figures.cost_nano / figures.questions
    return Point("alone", value.reference, nano, figures.accuracy, says)

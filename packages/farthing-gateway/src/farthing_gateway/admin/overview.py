"""The overview of some days: what was spent, saved, refused and promised, and what rang."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from starlette.responses import RedirectResponse, Response

from farthing_gateway.admin.charts import Span, bars, span
from farthing_gateway.admin.figures import week
from farthing_gateway.admin.periods import NAMES, chosen
from farthing_gateway.admin.rates import causes, rates, together
from farthing_gateway.admin.spending import has_spent, spending
from farthing_gateway.admin.state import Pages
from farthing_gateway.admin.view import View
from farthing_gateway.monitoring.base import PromiseStatus
from farthing_gateway.monitoring.promises import is_difference
from farthing_gateway.spending_report import Account, all_limits, charged
from farthing_gateway.storage.keys import KeyRecord
from farthing_gateway.storage.ledger.base import AccountBalance, Limit

PACED = 0.02
"""The share of a window that has to be gone before its pace says anything."""
StepName = Literal["record", "key", "request", "budget", "policy", "bundle"]
Verdict = Literal["kept", "broken", "open", "changed", "no grades"]


@dataclass(frozen=True)
class NextStep:
    """One thing to be done."""

    name: StepName
    is_done: bool


@dataclass(frozen=True)
class LimitUse:
    """A limit, and where its window stands."""

    limit: Limit
    spent: int
    """Settled and reserved, in the unit of the limit."""
    resets_at: datetime | None
    ends_at: float | None
    """What the window comes to at its end, at the pace so far; None: too early, or no end."""

    @property
    def share(self) -> float:
        """The share of the limit that is spent, at most 1."""
        return min(1.0, self.spent / self.limit.most) if self.limit.most else 1.0

    @property
    def ends_share(self) -> float | None:
        """The share of the limit that the window comes to, where that is known."""
        if self.ends_at is None or not self.limit.most:
            return None
        return self.ends_at / self.limit.most


@dataclass(frozen=True)
class ShownPromise:
    """How a promise is kept, and what is to be said of it."""

    kept: PromiseStatus
    verdict: Verdict
    span: Span | None
    """None where nothing is known, where no one share fits, and of parity: a difference."""

    def is_group_of(self, whole: "ShownPromise") -> bool:
        """Return whether this is of a group of the replies that another is of."""
        one, other = self.kept, whole.kept
        same = (one.policy, one.mode, one.certificate) == (
            other.policy,
            other.mode,
            other.certificate,
        )
        return one.group is not None and same


async def overview(view: View) -> Response:
    """Show the overview."""
    pages, now = view.pages, view.now
    figures, gateway = pages.figures, pages.gateway
    days = await chosen(view.http.query_params, figures, now)
    keys = await pages.keys.list() if view.by.is_admin else []
    totals = await figures.totals(days.since, days.until)
    slots = await figures.slots(days.since, days.until, days.slot_hours)
    failures = await figures.failures(days.since, days.until)
    asked = rates(await figures.kinds(days.since, days.until), failures)
    begun = await figures.first() is not None or await has_spent(pages.database)
    compared = bool(gateway.chat.policies) or totals.saved_nano != 0
    return view.show(
        "overview.html",
        days=days,
        ranges=NAMES,
        begun=begun,
        steps=await _next_steps(pages, now, begun=begun),
        spending=await spending(pages.database, gateway.config, keys, days),
        totals=totals,
        compared=compared,
        slots=slots,
        chart=bars(slots, compared=compared),
        asked=asked,
        rates=together(asked.values()),
        causes=causes(failures),
        budgets=await budgets(pages, keys, now),
        promises=[promise(one) for one in await pages.watch.kept()],
        alarms=await pages.watch.alarms(only_open=True),
        disputed=await disputed(pages),
        latencies=await figures.latencies(days.since, days.until),
        strongest=gateway.config.serve.strongest,
        records=gateway.config.record is not None,
        policies=gateway.chat.policies,
        address=f"{view.http.url.scheme}://{view.http.url.netloc}",
        key_ids={key.name: key.id for key in keys},
    )


async def disputed(pages: Pages) -> list[Account]:
    """Return the models whose replies claim more than their calls can have taken."""
    names = [f"model:{name}" for name in pages.gateway.config.models.sections]
    found = await charged(pages.gateway.ledger, names, ())
    return [one for one in found.accounts if one.disputed.calls]


async def budgets(pages: Pages, keys: Iterable[KeyRecord], now: datetime) -> list[LimitUse]:
    """Return the limits of the configuration, and those of keys."""
    gateway = pages.gateway
    limits = all_limits(gateway.config, keys, now)
    accounts = sorted({limit.account for limit in limits})
    balances = await gateway.ledger.balances(accounts) if accounts else []
    return [budget(limit, balances, now) for limit in limits]


def budget(limit: Limit, balances: Iterable[AccountBalance], now: datetime) -> LimitUse:
    """Return where a limit stands; its pace is what was spent by the time that is gone."""
    found = next(b for b in balances if (b.account, b.period) == (limit.account, limit.period))
    spent = found.settled.of(limit.unit) + found.held.of(limit.unit)
    ends_at = None
    if found.starts_at is not None and found.resets_at is not None and limit.period != "minute":
        gone = (now - found.starts_at) / (found.resets_at - found.starts_at)
        ends_at = spent / gone if gone >= PACED else None
    return LimitUse(limit, spent, found.resets_at, ends_at)


def promise(kept: PromiseStatus) -> ShownPromise:
    """Return what is to be said of a promise: kept and broken are proved, the rest is open."""
    if kept.share is None or kept.low is None or kept.high is None:
        return ShownPromise(kept, "no grades", None)
    verdict: Verdict = "open"
    if kept.changed:
        verdict = "changed"
    elif kept.promised is not None:
        if kept.high < kept.promised:
            verdict = "broken"
        elif kept.low >= kept.promised:
            verdict = "kept"
    if kept.changed or is_difference(kept.kind):
        return ShownPromise(kept, verdict, None)
    return ShownPromise(kept, verdict, span(kept.low, kept.share, kept.high, kept.promised))


async def _next_steps(pages: Pages, now: datetime, *, begun: bool) -> list[NextStep]:
    """Return what is to be done until the gateway saves money; nothing once a bundle decides."""
    gateway = pages.gateway
    policies = gateway.chat.policies
    if any(policy.loaded for policy in policies.values()):
        return []
    keys = [key for key in await pages.keys.list() if key.is_valid(now)]
    limited = bool(gateway.config.limits) or any(key.limits for key in keys)
    return [
        NextStep("record", gateway.config.record is not None),
        NextStep("key", begun or any("call" in key.scopes for key in keys)),
        NextStep("request", begun),
        NextStep("budget", limited),
        NextStep("policy", bool(policies)),
        NextStep("bundle", is_done=False),
    ]


async def certificates(view: View) -> Response:
    """Show what is promised, on what evidence, and until when."""
    gateway = view.pages.gateway
    kept = [promise(one) for one in await view.pages.watch.kept()]
    return view.show(
        "certificates.html",
        policies=gateway.chat.policies,
        kept=kept,
        log=await view.pages.watch.deployed(),
    )


async def policies(view: View) -> Response:
    """Show which requests are whose task, and who may answer them."""
    gateway = view.pages.gateway
    kinds = await view.pages.figures.kinds(week(view.now))
    sums = {
        name: (
            sum(one.requests for one in kinds if one.policy == name),
            sum(one.cost_nano for one in kinds if one.policy == name),
        )
        for name in gateway.chat.policies
    }
    return view.show("policies.html", policies=gateway.chat.policies, sums=sums)


async def alarms(view: View) -> Response:
    """Show what rang."""
    found = await view.pages.watch.alarms()
    return view.show("alarms.html", alarms=found)


async def close(view: View) -> Response:
    """Mark an alarm as seen to."""
    await view.pages.watch.close_alarm(view.form.get("id", ""), view.by.key.name)
    return RedirectResponse("/admin/alarms", 303)

"""A gateway with a page, made traffic of two weeks, keys and alarms; and a browser without one."""

import asyncio
import html
import re
import urllib.parse
import urllib.request
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from gateway_running import Reply, Running, gateway, models, serve_section
from made_traffic import call, passed
from policy_running import POLICY
from scripted_watch import ScriptedWatch

from farthing.traces.base import Call, CallError
from farthing_gateway.monitoring.base import Alarm, Deployed, PromiseStatus
from farthing_gateway.recording.failures import FailedRequest
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.recording.traffic_rows import cost_of
from farthing_gateway.storage.keys import KeyLimit, Scope, open_keys
from farthing_gateway.storage.ledger.base import Amount
from farthing_gateway.storage.ledger.ledger import open_ledger
from farthing_gateway.storage.migrations import migrate

T = TypeVar("T")
POLICIES = f"""{POLICY}
[policies.support]
pool = ["small", "large"]
system = "Classify the ticket."
bundle = "bundles/support"
"""
BUDGETS = """
[[budgets]]
of = "all"
usd = 20.0
per = "day"

[[budgets]]
of = "policy:letters"
usd = 300.0
per = "month"

[record]
usd_per_day = 1.0
"""
PROMPT = "What is number 7, and why?"


def config(url: str = "http://127.0.0.1:9/v1", **serve: Any) -> str:
    """Return the configuration of a gateway with two policies; one has no bundle."""
    section = serve_section(**({"keys": True} | serve))
    return section + models(url) + POLICIES + BUDGETS


NO_BUNDLE = config().replace('bundle = "bundle"', "")


def ended(job: Coroutine[Any, Any, T]) -> T:
    """Run a job to its end in a thread of its own: a driven browser has a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, job).result()


def made_key(where: str, name: str, *scopes: Scope, usd: float | None = None) -> str:
    """Make a key; return its secret."""

    async def make() -> str:
        await migrate(where)
        keys = await open_keys(where)
        limits = [] if usd is None else [KeyLimit("usd", "day", int(usd * 10**9))]
        _, secret = await keys.make(name, None, scopes, limits)
        await keys.aclose()
        return secret

    return ended(make())


def spend(where: str, usd: float, *accounts: str) -> None:
    """Charge accounts."""

    async def go() -> None:
        await migrate(where)
        ledger = await open_ledger(where)
        amount = Amount(int(usd * 10**9), 1_000, 1)
        hold = await ledger.reserve(["all", *accounts], amount, [], lease_s=60)
        await ledger.settle(hold, amount)
        await ledger.aclose()

    ended(go())


def put(where: str, *requests: RequestRecord, later: tuple[Call, ...] = ()) -> None:
    """Record requests; the later calls are made for the first of them."""

    async def go() -> None:
        await migrate(where)
        traffic = await open_traffic(where, None, keep_prompts=True)
        for at, one in enumerate(requests, start=1):
            traffic.put(one)
            if at % 1_000 == 0:
                await traffic.flush()
        if later:
            await traffic.attach(requests[0].id, later)
        await traffic.aclose()

    ended(go())


def fail(where: str, *requests: FailedRequest) -> None:
    """Record requests that were not answered."""

    async def go() -> None:
        await migrate(where)
        traffic = await open_traffic(where, None, keep_prompts=True)
        for one in requests:
            traffic.failed(one)
        await traffic.aclose()

    ended(go())


def failures(number: int, now: datetime, days: float = 14.0) -> list[FailedRequest]:
    """Return made requests of two weeks that were refused, or failed in their turn."""
    causes = [
        (402, "budget_exceeded", "key:shop may spend $20 a day; nothing is left"),
        (429, "rate_limit_exceeded", "100 calls a minute were made"),
        (502, "upstream_connection", "no model answered: large (its provider failed)"),
        (504, "deadline_exceeded", "there was no answer within the deadline of 30 s"),
    ]
    found = []
    for at in range(number):
        status, code, said = causes[at % 4]
        one = {"model": "large", "cost_usd": 0.002, "latency_s": 1.25, "error": "connection"}
        tries = (one, one) if status == 502 else ()
        moment = now - timedelta(days=days * (1 - (at + 1) / number), seconds=30)
        found.append(
            FailedRequest(
                f"f{at:031x}", moment, None, "large", status, code, said, tries,
                4_000_000 * bool(tries), 0.02,
            )
        )  # fmt: skip
    return found


def traffic(number: int, now: datetime, days: float = 14.0) -> list[RequestRecord]:
    """Return made requests of two weeks, more by day than by night; the cheap model often does."""
    generator = np.random.default_rng(12)
    found = []
    for at in range(number):
        back = days * (1 - (at + 1) / number) ** 1.0
        found.append(_request(at, now - timedelta(days=back), generator))
    return found


def _request(at: int, moment: datetime, generator: np.random.Generator) -> RequestRecord:
    strongest = float(generator.lognormal(-6.9, 0.4))
    small = _timed("small", "B", strongest / 100, generator)
    large = _timed("large", "B", strongest, generator)
    policy, calls = "letters", [small]
    if generator.random() < 0.25:
        calls = [small, large]
    if generator.random() < 0.03:
        calls = [replace_error(small), large]
    if generator.random() < 0.2:
        policy, calls = "support", [large]
    one = passed(f"{at:032x}", at=moment, question=PROMPT, policy=policy, calls=calls)
    cost = cost_of(calls)
    promised = policy == "letters"
    return replace(
        one,
        model="large" if promised and generator.random() < 0.6 else f"farthing/{policy}",
        promise="agreement" if promised else "none",
        saved_nano=cost_of([large]) - cost,
        latency_s=sum(each.latency_s or 0.0 for each in calls) + 0.004,
        certificate="9f8e7d6c5b4a" if promised else None,
        mode="default" if promised else None,
        answered_by=calls[-1].role,
        audit=0.02 if promised else None,
        audited=promised and bool(generator.random() < 0.02),
    )


def _timed(role: str, answer: str, usd: float, generator: np.random.Generator) -> Call:
    slow = {"small": -1.0, "large": 0.4}[role]
    return msgspec.structs.replace(
        call(role, answer, f"The answer is {answer}.", round(usd, 8)),
        model=f"{role}-2026",
        latency_s=float(generator.lognormal(slow, 0.5)),
        input_tokens=int(generator.integers(100, 900)),
        output_tokens=int(generator.integers(5, 60)),
    )


def replace_error(one: Call) -> Call:
    """Return a call that failed."""
    error = CallError("timeout", "small: no reply within 20 s")
    return msgspec.structs.replace(one, answer=None, text=None, error=error, cost_usd=0.0)


def watched(now: datetime) -> ScriptedWatch:
    """Return a watch that knows of three promises and of two alarms."""
    one = PromiseStatus(
        policy="letters",
        mode="default",
        certificate="9f8e7d6c5b4a",
        kind="agreement",
        promised=0.95,
        group=None,
        replies=9_612,
        drawn=191,
        graded=187,
        share=0.973,
        low=0.952,
        high=0.988,
        delta=0.05,
        volunteered=12,
        volunteered_share=0.75,
    )
    group = replace(
        one, group="billing", replies=812, drawn=15, graded=14, share=0.86, low=0.55, high=0.99
    )
    none = replace(one, certificate="0a1b2c3d4e5f", mode="careful", graded=0, drawn=0, replies=4)
    none = replace(none, share=None, low=None, high=None, volunteered=0, volunteered_share=None)
    broken = replace(one, mode="old", certificate="77aa88bb99cc", share=0.88, low=0.82, high=0.93)
    says = (
        "Replies agree with large less often than when the promise was proved. Recalibrate: "
        "farthing recalibrate --policy letters."
    )
    alarm = Alarm(
        "a1",
        "letters",
        "default",
        "9f8e7d6c5b4a",
        "agreement",
        now - timedelta(hours=3),
        says,
        143.0,
        None,
        None,
    )
    closed = replace(
        alarm,
        id="a0",
        signal="latency",
        at=now - timedelta(days=6),
        evidence=31.0,
        says="Replies take longer than they did.",
        closed_at=now - timedelta(days=5),
        closed_by="owner",
    )
    mark = "9f8e7d6c5b4a"
    says = "On at least 95 % of requests the reply is what large would have said."
    log = [
        Deployed("letters", "default", now - timedelta(days=9), mark, says, "loaded", None),
        Deployed("letters", "default", now - timedelta(days=2), "1111aaaa2222", says,
                 "recalibrated", "owner"),
        Deployed("letters", "default", now - timedelta(days=1), "9f8e7d6c5b4a", says,
                 "rolled back", "owner"),
    ]  # fmt: skip
    return ScriptedWatch([one, group, none, broken], [alarm, closed], log)


@dataclass
class Browser:
    """Follows the page as a browser would, without one: cookies, forms, origins."""

    running: Running
    cookie: str = ""

    def get(self, path: str, **headers: str) -> "Answered":
        """Ask for a page; redirects are not followed."""
        return self._send(urllib.request.Request(self.running.url + path), headers)

    def post(self, path: str, fields: dict[str, str], **headers: str) -> "Answered":
        """Send a form as this page's."""
        data = urllib.parse.urlencode(fields).encode()
        request = urllib.request.Request(self.running.url + path, data)
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._send(request, kind | {"Origin": self.running.url} | headers)

    def submit(self, page: str, path: str, **fields: str) -> "Answered":
        """Send a form with the token that a page has."""
        return self.post(path, {"token": token_in(self.get(page).text)} | fields)

    def login(self, key: str) -> "Answered":
        """Log in."""
        return self.post("/admin/login", {"key": key})

    def _send(self, request: urllib.request.Request, headers: dict[str, str]) -> "Answered":
        if self.cookie:
            request.add_header("Cookie", self.cookie)
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        opener = urllib.request.build_opener(_Stay)
        try:
            with opener.open(request, timeout=30) as reply:
                found = Answered(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as error:
            with error:
                found = Answered(error.code, error.headers, error.read())
        for set_cookie in found.headers.get_all("Set-Cookie") or []:
            pair, _, rest = set_cookie.partition(";")
            if pair.partition("=")[0] in {"farthing", "__Host-farthing"}:
                self.cookie = "" if "Max-Age=0" in rest else pair
        return found


class Answered(Reply):
    """A page."""

    @property
    def text(self) -> str:
        """The page itself."""
        return self.body.decode()


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def token_in(text: str) -> str:
    """Return the token of the forms on a page."""
    found = re.search(r'name="token" value="([0-9a-f]{64})"', text)
    assert found, text[:300]
    return found[1]


@contextmanager
def page(
    folder: Path, text: str | None = None, watching: ScriptedWatch | None = None
) -> Iterator[Running]:
    """Run a gateway with a page while the block runs."""
    with gateway(folder, text or config(), watching=watching) as running:
        yield running


def now() -> datetime:
    """Return the present moment."""
    return datetime.now(UTC)


def words(browser: Browser, path: str) -> str:
    """Return what a page says, in one line."""
    reply = browser.get(path)
    assert reply.status == 200, reply.text
    text = re.sub(r"<[^>]*>", " ", reply.text)
    return re.sub(r"\s+", " ", html.unescape(text).replace("\xa0", " "))

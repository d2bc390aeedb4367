"""A log of requests: what was asked, what one model answered, and what was paid for it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from farthing.errors import InputError
from farthing.models.prices import Price
from farthing.money import nano_from_usd
from farthing.traces.base import Call, Trace
from farthing.traces.files import form_of, read_records
from farthing.traces.importers.chat import Messages
from farthing.traces.importers.read import Supplied, check, read_foreign
from farthing.traces.trace_kind import Checker

DIGEST = "sha256:"
"""What begins a text that a trace keeps as a digest alone."""
DAY_S = 86_400.0


@dataclass(frozen=True)
class LoggedRequest:
    """One question of a log, as it was sent, with the calls that were made for it."""

    trace: Trace
    messages: Messages | None
    """What was sent, whole; None where it was more than texts, or the log does not hold it."""

    def call(self, model: str) -> Call | None:
        """Return what a model answered; None where it was not asked."""
        return next((call for call in self.trace.calls if call.role == model), None)

    @property
    def kind(self) -> str:
        """What it is grouped by: its own group, else how its system prompt begins."""
        prompt = self.trace.system_prompt or ""
        return self.trace.group or " ".join(prompt.split())[:48] or "no system prompt"


@dataclass(frozen=True)
class Spent:
    """What some requests cost."""

    requests: int
    usd: float
    unpriced: int = 0
    """Requests whose cost is not known, which add nothing to it."""


@dataclass(frozen=True)
class RequestLog:
    """All requests of one log or several."""

    requests: Sequence[LoggedRequest]
    notes: Sequence[str]
    """What the files lack, a line each."""
    period: tuple[datetime, datetime] | None
    """When the first and the last call was made; None where no file says."""

    @property
    def days(self) -> float | None:
        """Days from the first call to the last; None where nobody knows, or it is one moment."""
        if self.period is None or self.period[0] == self.period[1]:
            return None
        return (self.period[1] - self.period[0]).total_seconds() / DAY_S

    @property
    def models(self) -> dict[str, Spent]:
        """What each model was paid, the most first."""
        return _most_first(
            [(call.role, request) for request in self.requests for call in request.trace.calls]
        )

    @property
    def kinds(self) -> dict[str, Spent]:
        """What each kind of request cost, the most first."""
        return _most_first([(request.kind, request) for request in self.requests])


def read_log(paths: Sequence[Path], prices: Mapping[str, Price] | None = None) -> RequestLog:
    """Read logs of other tools, or traces, as requests; prices stand in for costs that lack."""
    traces: list[Trace] = []
    notes: dict[str, None] = {}
    messages: dict[str, Messages | None] = {}
    times: list[datetime] = []
    for path in paths:
        form = form_of(path)
        if form is None:
            own = read_records(path)
            messages |= {trace.id: _own_messages(trace) for trace in own}
            traces += own
            continue
        imported = read_foreign([path], form, Supplied(prices=prices or {}))
        check(imported, Checker())
        messages |= imported.messages
        notes |= dict.fromkeys(imported.notes)
        times += imported.period or ()
        traces += imported.traces
    ids = Counter(trace.id for trace in traces)
    if twice := [name for name, n in ids.items() if n > 1]:
        raise InputError(
            f"question '{twice[0]}' is in several of {', '.join(map(str, paths))}; import them "
            "into one store first: farthing traces import FILE --store traces.db"
        )
    requests = [LoggedRequest(trace, messages[trace.id]) for trace in traces]
    return RequestLog(requests, list(notes), (min(times), max(times)) if times else None)


def _own_messages(trace: Trace) -> Messages | None:
    """Return what was sent, where a trace holds it: an instruction at most, and one question."""
    prompt = trace.system_prompt or ""
    if not trace.question or prompt.startswith(DIGEST) or trace.history or trace.options:
        return None
    system = (("system", prompt),) if prompt else ()
    return (*system, ("user", trace.question))


def _most_first(parts: Sequence[tuple[str, LoggedRequest]]) -> dict[str, Spent]:
    """Add up by name; a question that was asked several times counts as often."""
    nano: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    unknown: Counter[str] = Counter()
    by_name: dict[tuple[str, str], LoggedRequest] = {(n, r.trace.id): r for n, r in parts}
    for (name, _), request in by_name.items():
        times = request.trace.requests
        asked[name] += times
        costs = [call.cost_usd for call in request.trace.calls if name in (call.role, request.kind)]
        known = [cost for cost in costs if cost is not None]
        nano[name] += times * sum(map(nano_from_usd, known))
        unknown[name] += times * (len(known) < len(costs))
    found = {n: Spent(asked[n], nano[n] / 1e9, unknown[n]) for n in asked}
    return dict(sorted(found.items(), key=lambda item: (-item[1].usd, -item[1].requests)))

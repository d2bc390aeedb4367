"""What calls count as, and what recorded costs leave in doubt.

What a trace keeps of a call's usage beside its tokens in and out are numbers under `extra`. A call
that says none of it has nothing there, so that what was recorded before it stays what it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.models.prices import Price, charge_nano
from farthing.models.thinking import split_name
from farthing.models.usage import COUNTS
from farthing.money import nano_from_usd
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.base import REASONING_TOKENS, Call, Trace

HOW = (
    "--column cost=COLUMN names that of a table, and --price MODEL=IN,OUT prices recorded tokens "
    "(of `farthing traces import`); traces of our own form have `cost_usd`"
)
"""Where costs come from."""


def charged_nano(call: Call) -> int:
    """Return what a call counts as, in nano-dollars.

    One of unknown cost counts as the most that it can have cost, as budgets settle it; where that
    was not recorded either, as free.

    >>> charged_nano(Call(round=1, role="m", cost_usd=2e-9, largest_cost_usd=5e-9))
    2
    >>> charged_nano(Call(round=1, role="m", largest_cost_usd=5e-9))
    5
    """
    usd = call.largest_cost_usd if call.cost_usd is None else call.cost_usd
    return 0 if usd is None else nano_from_usd(usd)


def counted_nano(calls: Sequence[Call]) -> tuple[list[int], dict[str, float]]:
    """Return what each call counts as in figures, and the share of unknown costs by role.

    A call of unknown cost that did not fail counts as the mean of its role's others, and as 0 where
    no other is known, which `check_costs` refuses. One that failed without a cost counts as 0.

    >>> paid, unknown = Call(round=1, role="m", cost_usd=2e-9), Call(round=1, role="m")
    >>> counted_nano([paid, Call(round=1, role="m", cost_usd=5e-9), unknown, unknown])
    ([2, 5, 4, 4], {'m': 0.5})
    >>> counted_nano([unknown])
    ([0], {'m': 1.0})
    """
    known: dict[str, list[int]] = {}
    unknown: dict[str, int] = {}
    for call in calls:
        if _has_cost(call):
            known.setdefault(call.role, []).append(charged_nano(call))
        elif call.error is None:
            unknown[call.role] = unknown.get(call.role, 0) + 1
    mean = {
        role: round(sum(known[role]) / len(known[role])) if role in known else 0 for role in unknown
    }
    return (
        [
            mean[call.role] if call.error is None and not _has_cost(call) else charged_nano(call)
            for call in calls
        ],
        {role: n / (n + len(known.get(role, ()))) for role, n in unknown.items()},
    )


def check_costs(traces: TraceArrays) -> None:
    """Refuse questions of which nobody could say what is saved.

    A model that is free has the recorded cost 0; one without any recorded cost is not free.
    """
    if all(traces.unpriced.get(role) == 1 for role in traces.roles):
        problem = "no call of these traces has a cost, so nothing is known of savings"
        raise InputError(f"{problem}; {HOW}")
    if unknown := [role for role, share in traces.unpriced.items() if share == 1]:
        problem = f"no call of {', '.join(unknown)} has a cost, so nothing is known of savings"
        raise InputError(f"{problem}; {HOW}, which is 0 where a call is free")
    if not traces.cost_nano.any():
        problem = "every cost in these traces is 0, so nothing can be saved"
        raise InputError(f"{problem}; if calls did cost something, {HOW}")


def doubt(traces: TraceArrays) -> str | None:
    """Say whose calls were recorded without a cost, and what they count as; None: nobody's.

    >>> from dataclasses import replace
    >>> from farthing.traces.assemble import assemble
    >>> from farthing.traces.base import Call, Trace
    >>> calls = [Call(round=1, role=role, answer="4", cost_usd=1) for role in ("base", "guide")]
    >>> traces = assemble([Trace(id="q", calls=calls)])
    >>> doubt(traces)
    >>> free = replace(traces, cost_nano=traces.cost_nano * [1, 0])
    >>> print(doubt(free))
    every call of guide is recorded at no cost, so it counts as free
    >>> print(doubt(replace(free, unpriced={"guide": 1.0})))
    no call of guide has a cost, so nothing is known of savings; record `cost_usd`
    """
    paid = (traces.cost_nano > 0).sum(axis=(0, 1))
    if all(traces.unpriced.get(role) == 1 for role in traces.roles):
        return "no call has a cost, so nothing is known of savings; record `cost_usd`"
    made = (traces.answer != NO_ANSWER).sum(axis=(0, 1))
    unpaid = [traces.roles[i] for i in range(traces.n_roles) if made[i] and not paid[i]]
    unknown = [role for role in unpaid if traces.unpriced.get(role) == 1]
    free = [role for role in unpaid if role not in unknown]
    some = {role: share for role, share in traces.unpriced.items() if role not in unknown}
    said = []
    if unknown:
        what = f"no call of {', '.join(unknown)} has a cost"
        said += [f"{what}, so nothing is known of savings; record `cost_usd`"]
    if free:
        counts = "it counts" if len(free) == 1 else "they count"
        said += [f"every call of {', '.join(free)} is recorded at no cost, so {counts} as free"]
    if some:
        shares = ", ".join(f"{share:.1%} of the calls of {role}" for role, share in some.items())
        said += [f"{shares} have no cost; each counts as the mean of the others"]
    return "; ".join(said) or None


def _has_cost(call: Call) -> bool:
    return call.cost_usd is not None or call.largest_cost_usd is not None


_TIER, _UNIT = "tier:", "unit:"


def kept(usage: Usage | None) -> dict[str, float]:
    """Return what a trace keeps under `extra` of what a call took.

    >>> kept(Usage(100, 10, cached_tokens=90, tier="flex"))
    {'cached_tokens': 90.0, 'tier:flex': 1.0}
    """
    if usage is None:
        return {}
    counts = {name: getattr(usage, name) for name in COUNTS if getattr(usage, name)}
    thoughts = usage.reasoning_tokens
    thought = {} if thoughts is None else {REASONING_TOKENS: thoughts}
    units = {_UNIT + name: some for name, some in usage.units}
    tier = {} if usage.tier is None else {_TIER + usage.tier: 1}
    return {name: float(some) for name, some in (counts | thought | units | tier).items()}


def usage_of(call: Call) -> Usage | None:
    """Return what a call took; None where its tokens are not known.

    >>> call = Call(round=1, role="m", input_tokens=9, output_tokens=1, extra={"tier:flex": 1.0})
    >>> usage_of(call).tier
    'flex'
    """
    if call.input_tokens is None or call.output_tokens is None:
        return None
    counts: dict[str, Any] = {name: int(call.extra.get(name, 0)) for name in COUNTS}
    units = {name: int(some) for name, some in call.extra.items() if name.startswith(_UNIT)}
    return Usage(
        call.input_tokens,
        call.output_tokens,
        **counts,
        tier=next((one.removeprefix(_TIER) for one in call.extra if one.startswith(_TIER)), None),
        units=tuple((name.removeprefix(_UNIT), some) for name, some in units.items()),
        reasoning_tokens=int(call.extra.get(REASONING_TOKENS, 0)),
    )


FIGURES = ("calls", "priced", "recorded_nano", "today_nano", "dearer", "cheaper")
"""Of a model: its calls, those that have a recorded cost, tokens and a price, what these are
recorded at and would cost today, in nano-dollars, and how many of them differ in which way."""


def reprice(
    traces: Iterable[Trace], own: Mapping[str, Price], published: Callable[[str], Price | None]
) -> dict[str, dict[str, int]]:
    """Return the figures of each model's calls, whatever failed left out.

    Args:
        traces: whose calls.
        own: prices of one's own, by model.
        published: from a model's name to its list price; None: it has none.
    """
    prices: dict[str, Price | None] = {}
    found: dict[str, dict[str, int]] = {}
    for call in (call for trace in traces for call in trace.calls if call.error is None):
        name = split_name(call.model or call.role)[0]
        if name not in prices:
            prices[name] = own.get(name) or published(name)
        figures, usage = found.setdefault(name, dict.fromkeys(FIGURES, 0)), usage_of(call)
        seconds = call.latency_s or 0.0
        now = None if usage is None else charge_nano(prices[name], usage, seconds)
        figures["calls"] += 1
        if now is None or call.cost_usd is None:
            continue
        before = nano_from_usd(call.cost_usd)
        added = {"priced": 1, "recorded_nano": before, "today_nano": now}
        for figure, some in (added | {"dearer": now > before, "cheaper": now < before}).items():
            figures[figure] += some
    return found

"""The tries of a request: what a receipt and a trace say of them, and which left it unanswered."""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from farthing.money import usd_from_nano
from farthing.traces.base import Call
from farthing_gateway.charging import ChargeAttempt
from farthing_gateway.recording.record import FALLBACK


def attempts_json(tries: Sequence[ChargeAttempt]) -> tuple[Mapping[str, Any], ...]:
    """Return what a receipt says of each try: who was asked, what it took, how it failed."""
    return tuple(
        {
            "model": one.model,
            "cost_usd": usd_from_nano(one.cost_nano),
            "latency_s": round(one.took_s, 4),
        }
        | ({} if one.error is None else {"error": one.error.type})
        | ({} if one.listed_nano is None else {"listed_usd": usd_from_nano(one.listed_nano)})
        for one in tries
    )


def seconds(tries: Sequence[ChargeAttempt]) -> float:
    """Return the seconds from the beginning of the first try to the end of the last."""
    return max(one.began + one.took_s for one in tries) - tries[0].began


def failed_calls(
    tries: Sequence[ChargeAttempt], sections: Mapping[str, str], own: Collection[str]
) -> list[Call]:
    """Return the tries of each model that failed in the end as one call of a trace.

    Args:
        tries: those of one model follow one another.
        sections: what clients call a model to what its provider calls it.
        own: the models that were not asked in another one's place.
    """
    found = []
    for name, group in groupby(tries, key=lambda one: one.model):
        its = list(group)
        if its[-1].error is not None:
            found.append(
                Call(
                    round=1,
                    role=name,
                    model=sections.get(name),
                    latency_s=seconds(its),
                    cost_usd=usd_from_nano(sum(one.cost_nano for one in its)),
                    error=its[-1].error,
                    extra={} if name in own else {FALLBACK: 1.0},
                )
            )
    return found


def unanswered(tries: Sequence[ChargeAttempt], *, nothing: bool) -> dict[str, str]:
    """Return the models that failed after the last answer came to how they did, the last first.

    A model that failed before somebody else answered was replaced by whoever decided to ask that
    one. So was one that was asked together with it.

    Args:
        tries: in the order in which they began.
        nothing: whether no answer came of any of them: then every model that failed counts.
    """
    ends = [one.began + one.took_s for one in tries if one.error is None]
    answered = -math.inf if nothing else max(ends, default=-math.inf)
    began: dict[str, float] = {}
    last: dict[str, ChargeAttempt] = {}
    for one in tries:
        began.setdefault(one.model, one.began)
        last[one.model] = one
    return {
        name: error.type
        for name in reversed(began)
        if (error := last[name].error) is not None and began[name] > answered
    }

"""What a trace keeps of a call's usage beside its tokens in and out: numbers under `extra`.

A call that says none of it has nothing there, so that what was recorded before it stays what it is.
"""

from typing import Any

from farthing.models.base import Usage
from farthing.models.usage import COUNTS
from farthing.traces.base import REASONING_TOKENS, Call

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

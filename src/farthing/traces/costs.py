"""What calls count as, and what recorded costs leave in doubt."""

from farthing.money import nano_from_usd
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.base import Call


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


def doubt(traces: TraceArrays) -> str | None:
    """Say whose calls were recorded without any cost, and so count as free; None: nobody's.

    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from farthing.process.generator.generate import generate
    >>> from farthing.process.generator.presets import preset
    >>> traces = generate(preset("mmlu-llama2-7b").config, 3, np.random.default_rng(0))
    >>> doubt(traces)
    >>> print(doubt(replace(traces, cost_nano=traces.cost_nano * [1, 0])))
    no call of guide has a cost, so it counts as free; record `cost_usd`
    """
    paid = (traces.cost_nano > 0).sum(axis=(0, 1))
    if not paid.any():
        return "no call has a cost, so every policy looks free; record `cost_usd`"
    made = (traces.answer != NO_ANSWER).sum(axis=(0, 1))
    free = [traces.roles[i] for i in range(traces.n_roles) if made[i] and not paid[i]]
    if not free:
        return None
    counts = "it counts" if len(free) == 1 else "they count"
    return f"no call of {', '.join(free)} has a cost, so {counts} as free; record `cost_usd`"

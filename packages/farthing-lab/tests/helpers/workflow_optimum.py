"""The best that a workflow of fixed lengths can come to: exact dynamic programming, by enumeration.

Shares no code with the planners but the records of parts and choices. Tests and
`benchmarks/planners.py exact` hold plans to it.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product

import numpy as np
from planner_worlds import random_workflow

from farthing_lab.methods.planners.base import Remaining
from farthing_lab.methods.simulators.workflow import Workflow

Running = tuple[tuple[float, int, float], ...]
"""Parts under way: when each ends, which it is, and its chance."""


def exact(workflow: Workflow, nano: int, seconds: float) -> float:
    """Return the best chance of being done, where all lengths are fixed: by enumeration."""
    parts = workflow.parts

    @cache
    def best(done: frozenset[int], running: Running, nano: int, now: float) -> float:
        if len(done) == len(parts):
            return 1.0
        found = [0.0]
        for ends, place, chance, cost in started(done, running, now):
            if cost <= nano and ends <= seconds:
                more = tuple(sorted((*running, (ends, place, chance))))
                found.append(best(done, more, nano - cost, now))
        if running:
            found.append(waited(done, running, nano))
        return max(found)

    def started(
        done: frozenset[int], running: Running, now: float
    ) -> Iterator[tuple[float, int, float, int]]:
        out = done | {part for _, part, _ in running}
        for place, part in enumerate(parts):
            if place not in out and set(part.after) <= done:
                for one in part.choices:
                    cost = one.samples * (one.input_nano + one.tokens[0] * one.token_nano)
                    ends = now + one.latency_s + one.tokens[0] / one.tokens_per_s
                    yield ends, place, 1 - (1 - one.success) ** one.samples, cost

    def waited(done: frozenset[int], running: Running, nano: int) -> float:
        after = running[0][0]
        ended = [one for one in running if one[0] == after]
        going = tuple(one for one in running if one[0] > after)
        total = 0.0
        for right in product((False, True), repeat=len(ended)):
            both = list(zip(ended, right, strict=True))
            weight = float(np.prod([one[2] if r else 1 - one[2] for one, r in both]))
            total += weight * best(done | {one[1] for one, r in both if r}, going, nano, after)
        return total

    return best(frozenset(), (), nano, 0.0)


def instances(count: int, *seed: int) -> list[tuple[Workflow, Remaining, float]]:
    """Return random workflows of 1 to 3 parts, money and time, and their best chance.

    Those that are hardly ever or nearly always done are left out: they tell no plans apart.
    """
    rng = np.random.default_rng(seed)
    found: list[tuple[Workflow, Remaining, float]] = []
    while len(found) < count:
        flow = random_workflow(rng, fixed=True, most=3)
        left = Remaining(int(rng.integers(20, 250)), float(rng.integers(5, 30)))
        best = exact(flow, left.nano, left.seconds)
        if 0.05 < best < 0.98:
            found.append((flow, left, best))
    return found

"""Traffic as traces of a pool: what every model said to the same question."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from farthing.traces.base import Trace
from farthing.traces.files import write_traces
from farthing.traces.store import STORES, TRAFFIC, Store, transaction
from farthing.traces.system import System
from farthing.traces.trace_kind import answering, shape_of, trace_problems
from farthing_gateway.recording.record import RequestRecord, answered_directly


@dataclass(frozen=True)
class Pool:
    """Questions of a day, and who answered them."""

    traces: Sequence[Trace]
    """Those that some models have not answered are marked `truncated`: no proof uses them."""
    systems: Sequence[System | None]
    """What answered each of them was made of, where that is known."""
    models: tuple[str, ...]
    """The roles that have to answer a question, sorted."""
    left_out: int
    """Requests that are no question to a pool, such as episodes of several rounds."""

    @property
    def complete(self) -> int:
        """Questions that every model has answered, or failed to."""
        return sum(not trace.truncated for trace in self.traces)


def as_pool(requests: Iterable[RequestRecord], models: Sequence[str] = ()) -> Pool:
    """Return what passed as a pool; one trace a request, with live and later calls side by side.

    Where a bundle decided, a trace is complete only if chance drew it, for an audit or to explore:
    a policy that asks every model by itself does so on questions that it finds hard.

    What a fallback said is left out, since it was asked because another model had failed; so is a
    call that a client stopped, and one to a model that was left alone (`answered_directly`).

    Args:
        requests: what passed.
        models: the roles that have to answer; others are left out. None given: all there are.
    """
    found: list[Trace] = []
    systems: list[System | None] = []
    chosen: list[bool] = []
    left_out = 0
    for request in requests:
        trace = _of_pool(request.trace, models)
        if trace is None:
            left_out += 1
        else:
            found.append(trace)
            systems.append(request.system)
            chosen.append(request.mode is None or drawn(request))
    wanted = set(models) or {call.role for trace in found for call in trace.calls}
    marked = [
        msgspec.structs.replace(trace, truncated=not fair or len(trace.calls) < len(wanted))
        for trace, fair in zip(found, chosen, strict=True)
    ]
    return Pool(marked, systems, tuple(sorted(wanted)), left_out)


def write_pool(file: Path, pool: Pool) -> int:
    """Write a pool's traces; return how many of them the file had already.

    Into a store (`.db`) go those that are new, with what they were made with, and those that have
    changed since, such as by a model that was asked later; what else it holds stays. Any other file
    is replaced.
    """
    if file.suffix not in STORES:
        write_traces(file, pool.traces)
        return 0
    with Store.open(file) as store, transaction(store.connection):
        there = {trace.id: trace for trace in store.traces()}
        for trace, system in zip(pool.traces, pool.systems, strict=True):
            if trace == there.get(trace.id):
                continue
            if system is not None:
                store.made_with(system)
            (store.replace if trace.id in there else store.append)(trace, TRAFFIC)
    return sum(trace.id in there for trace in pool.traces)


def drawn(request: RequestRecord) -> bool:
    """Return whether chance drew a request whose bundle decided, so that its trace is completed."""
    return request.audited or (request.decided is not None and request.decided.explored)


def _of_pool(trace: Trace, models: Sequence[str]) -> Trace | None:
    own = [call for call in answering(trace) if answered_directly(call)]
    calls = [call for call in own if not models or call.role in models]
    if not calls or shape_of(trace) != "pool":
        return None
    kept = msgspec.structs.replace(trace, calls=calls)
    return None if any(trace_problems(kept)) else kept

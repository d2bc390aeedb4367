"""What the gateway's addresses about promises say: feedback in, what is watched out."""

import asyncio
from typing import Any

from farthing import plugins
from farthing.tasks.base import Task
from farthing_gateway.errors import ApiError
from farthing_gateway.monitoring import status
from farthing_gateway.monitoring.feedback import Grading, Noted, read_feedback
from farthing_gateway.monitoring.status import StoredWatch
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic import Traffic
from farthing_gateway.storage.keys import KeyRecord

PATIENCE_S = 2.0
"""How long another worker may take to write a request that somebody grades already."""
_PAUSE_S = 0.1


async def take_feedback(
    grading: Grading | None, body: bytes, key: KeyRecord | None, *, workers: int
) -> Noted:
    """Note feedback on a request.

    Args:
        grading: who takes it; None: nothing is recorded.
        body: as it was posted.
        key: who sent it; it may grade what was asked with it, one for admins everything.
        workers: processes that answer requests; of this one all is written first.
    """
    if grading is None:
        said = "nothing is recorded here, so nothing can be graded; the server needs [record]"
        raise ApiError(404, said, code="not_recorded")
    read = read_feedback(body)
    await grading.traffic.flush()
    passed = await _found(grading.traffic, read.trace_id, PATIENCE_S if workers > 1 else 0.0)
    mine = key is None or "admin" in key.scopes or (passed is not None and passed.key == key.id)
    if passed is None or not mine:
        said = "no recorded request that this key may grade has this 'trace_id'"
        raise ApiError(404, said, code="trace_not_found", param="trace_id")
    task: Task = plugins.load("tasks", passed.trace.task)
    return await grading.note(read, passed, task, None if key is None else key.id)


async def described(watch: StoredWatch | None) -> dict[str, Any]:
    """Return the body of a reply that says what is watched."""
    if watch is None:
        said = "nothing is recorded here, so nothing is watched; the server needs [record]"
        raise ApiError(404, said, code="not_recorded")
    return {"object": "watch", **await status.described(watch)}


async def _found(traffic: Traffic, trace: str, patience_s: float) -> RequestRecord | None:
    """Return a request; another worker may be about to write it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + patience_s
    while (passed := await traffic.find(trace)) is None and loop.time() < until:
        await asyncio.sleep(_PAUSE_S)
    return passed

"""What tests of traffic put into it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from farthing.traces.base import Call, Trace
from farthing_gateway.recording.record import RequestRecord

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def call(
    role: str, answer: str | None = "4", text: str | None = None, cost_usd: float = 0.01
) -> Call:
    """Return a call of a pool."""
    return Call(round=1, role=role, model=role, answer=answer, text=text, cost_usd=cost_usd)


def passed(
    name: str,
    *,
    at: datetime = NOW,
    question: str = "2 + 2?",
    conversation: str = "",
    policy: str | None = None,
    calls: Sequence[Call] = (),
) -> RequestRecord:
    """Return a request of a conversation of its own that `large` answered."""
    made = list(calls) or [call("large")]
    return RequestRecord(
        id=name,
        at=at,
        key=None,
        conversation=conversation or name,
        policy=policy,
        model=made[0].role,
        messages=[{"role": "user", "content": question}],
        trace=Trace(id=name, question=question, calls=made),
        promise="none",
        saved_nano=None,
        latency_s=1.5,
    )

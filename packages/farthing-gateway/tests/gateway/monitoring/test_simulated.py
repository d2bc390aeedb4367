"""A made stream: the interval covers its truth, whatever users who choose what they grade say."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from watched_traffic import AGREEMENT, RIGHT, Pool, event, later, reply

from farthing.promises.statistics.confidence_sequence import interval
from farthing.runtime.base import Agent
from farthing.tasks.text import TEXT
from farthing.traces.base import Call
from farthing_gateway.monitoring.auditor import Auditor
from farthing_gateway.monitoring.base import PromiseStatus
from farthing_gateway.monitoring.counter import count
from farthing_gateway.monitoring.events import AnyEvent, AuditGraded, Replied, Volunteered
from farthing_gateway.monitoring.feedback import Feedback, Grading
from farthing_gateway.monitoring.statistics import MonitorState, after, begin
from farthing_gateway.monitoring.status import open_watch
from farthing_gateway.recording.audit_sampling import draw
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.text_retention import TextRetention
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.migrations import migrate

TRUE, AUDIT, N = 0.93, 0.3, 1_500


class Reference:
    """The reference says what a table says."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    async def ask(self, agent: Agent, trace: str, question: str) -> Call:
        del question
        return Call(round=1, role=agent.role, answer=self.answers[trace], cost_usd=0.001)


def played(where: str) -> tuple[PromiseStatus, dict[str, bool], float]:
    """Play the stream through the database, as a gateway does.

    Every request is recorded; audits are drawn as they are; users complain of each wrong answer
    and praise none. Return what is kept, whether each request agreed, and the largest share of
    audits.
    """
    generator = np.random.default_rng(4)
    agreed = {f"q{k:04}": bool(generator.random() < TRUE) for k in range(N)}
    answers = {name: "4" if same else "5" for name, same in agreed.items()}

    async def go() -> PromiseStatus:
        await migrate(where)
        traffic = await open_traffic(where, None, keep_prompts=True)
        watch = await open_watch(where)
        policies = {"sums": Pool(("small", "large"))}
        auditor = Auditor(watch.database, traffic, Reference(answers), policies, 200)
        grading = Grading(watch.database, traffic, TextRetention())
        for at, name in enumerate(agreed):
            traffic.put(drawn(name, at))
        await traffic.flush()
        for name, same in list(agreed.items())[::5]:
            if not same:
                passed = await traffic.find(name)
                assert passed is not None
                said = Feedback(trace_id=name, grade=0.0)
                await grading.note(said, passed, TEXT, None)
        while await auditor.once():
            pass
        await count(watch.database, 0.05)
        (found,) = await watch.kept()
        await watch.aclose()
        await traffic.aclose()
        return found

    return asyncio.run(go()), agreed, AUDIT


def drawn(name: str, at: int) -> RequestRecord:
    one = reply(name, AGREEMENT, audit=AUDIT, at=later(at))
    return replace(one, audited=draw(name, AUDIT, 0.0).audited)


@pytest.mark.slow
def test_a_stream_through_the_database_comes_to_the_sum_by_hand(tmp_path: Path) -> None:
    kept, agreed, share = played(str(tmp_path / "farthing.db"))
    chosen = [same for name, same in agreed.items() if draw(name, share, 0.0).audited]
    assert (kept.replies, kept.drawn, kept.graded) == (N, len(chosen), len(chosen))
    assert kept.share == pytest.approx(sum(chosen) / len(chosen))
    assert kept.low is not None
    assert kept.high is not None
    assert kept.low < TRUE < kept.high
    assert kept.high - kept.low < 0.12
    complaints = sum(not same for same in list(agreed.values())[::5])
    assert (kept.volunteered, kept.volunteered_share) == (complaints, 0.0)


@pytest.mark.slow
def test_intervals_of_audits_miss_seldom_and_those_of_volunteers_would_not() -> None:
    """Two hundred streams, each looked at after every batch: at most 5 % may ever miss."""
    generator = np.random.default_rng(5)
    missed = 0
    streams, n = 200, 600
    for _ in range(streams):
        right = generator.random(n) < TRUE
        audited = generator.random(n) < AUDIT
        angry = ~right & (generator.random(n) < 0.8)
        state = MonitorState(begin(first(), 0.05), {})
        ever = False
        for start in range(0, n, 100):
            state, _ = after(state, batch(start, right, audited, angry))
            low, high = interval(state.whole.all.mean)
            ever |= not low <= TRUE <= high
        missed += ever
        assert state.whole.all.mean.n == audited.sum()
        assert state.whole.all.volunteered == (angry & ~audited).sum()
    # Of 200, at probability 0.05 each, 20 or more have a probability of 0.2 %.
    assert missed < 20


def first() -> Replied:
    return Replied(kind="selective", promised=RIGHT.promised)


def batch(
    start: int,
    right: np.ndarray[tuple[int], np.dtype[np.bool_]],
    audited: np.ndarray[tuple[int], np.dtype[np.bool_]],
    angry: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> list[tuple[str, AnyEvent]]:
    """Return the events of a hundred requests."""
    found: list[AnyEvent] = []
    for k in range(start, start + 100):
        found.append(msgspec.structs.replace(first(), audited=bool(audited[k])))
        if audited[k]:
            found.append(AuditGraded(value=float(right[k]), probability=AUDIT))
        elif angry[k]:
            found.append(Volunteered(value=0.0))
    return [event(one) for one in found]

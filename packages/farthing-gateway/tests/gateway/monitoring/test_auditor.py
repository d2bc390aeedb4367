"""Audits are asked for once, graded, and lost by no process that ends."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from made_traffic import call
from watched_traffic import AGREEMENT, Pool, reply

from farthing.runtime.base import Agent
from farthing.traces.base import Call, CallError
from farthing_gateway.monitoring import audits
from farthing_gateway.monitoring.auditor import Auditor
from farthing_gateway.monitoring.audits import MOST_TRIES
from farthing_gateway.monitoring.base import PromiseStatus
from farthing_gateway.monitoring.counter import count
from farthing_gateway.monitoring.status import StoredWatch, open_watch
from farthing_gateway.recording.export import as_pool
from farthing_gateway.recording.record import COOLING, FALLBACK, RequestRecord
from farthing_gateway.recording.redaction import Redact, contacts
from farthing_gateway.recording.traffic import Traffic, open_traffic
from farthing_gateway.storage.database import Step, microseconds
from farthing_gateway.storage.ledger.base import Limit, LimitError

NOW = datetime.now(UTC)


class KilledError(Exception):
    """The process ends here."""


@dataclass
class Asked:
    """Answers as a test says, and notes whom it was asked of."""

    answers: Mapping[str, str | Exception | CallError]
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """(model, id, question)."""

    async def ask(self, agent: Agent, trace: str, question: str) -> Call:
        self.asked.append((agent.role, trace, question))
        await asyncio.sleep(0)
        said = self.answers[agent.role]
        if isinstance(said, Exception):
            raise said
        if isinstance(said, CallError):
            return Call(round=1, role=agent.role, error=said)
        return call(agent.role, answer=said, cost_usd=0.03)


@dataclass
class Worker:
    """A process of a gateway, as far as audits are its own."""

    traffic: Traffic
    watch: StoredWatch
    asking: Asked
    auditor: Auditor

    async def put(self, *requests: RequestRecord, remembered: bool = True) -> None:
        for one in requests:
            self.traffic.put(one)
            if remembered:
                self.auditor.remember(one)
        await self.traffic.flush()

    async def kept(self) -> PromiseStatus:
        await count(self.watch.database, 0.05)
        return (await self.watch.kept())[0]

    async def found(self, name: str) -> RequestRecord:
        found = await self.traffic.find(name)
        assert found is not None
        return found


def playing(
    where: str, *plays: Callable[[Worker], Awaitable[None]], redact: Redact | None = None
) -> None:
    """Play in one process after the other, each of which begins with nothing in its memory."""

    async def go(play: Callable[[Worker], Awaitable[None]]) -> None:
        traffic = await open_traffic(where, redact, keep_prompts=True)
        watch = await open_watch(where)
        asking = Asked({"large": "4", "middle": "5"})
        policies = {"sums": Pool(("small", "middle", "large"))}
        try:
            auditor = Auditor(watch.database, traffic, asking, policies, 4)
            await play(Worker(traffic, watch, asking, auditor))
        finally:
            await watch.aclose()
            await traffic.aclose()

    for play in plays:
        asyncio.run(go(play))


async def expire(worker: Worker) -> None:
    """Let every lease run out, and every pause end."""
    await worker.watch.database.write(Step("UPDATE audits SET until_us = 0, due_us = 0"))


def drawn(name: str, answer: str = "4", question: str = "2 + 2?") -> RequestRecord:
    one = reply(name, audited=True, answer=answer, at=datetime.now(UTC))
    return replace(one, trace=msgspec.structs.replace(one.trace, question=question))


def test_an_audit_asks_those_that_were_not_asked_and_compares(where: str) -> None:
    async def play(worker: Worker) -> None:
        await worker.put(drawn("yes"), drawn("no", "7"), reply("plain", at=datetime.now(UTC)))
        assert await worker.auditor.once() == 2
        assert sorted(worker.asking.asked) == [
            (role, name, "2 + 2?") for role in ("large", "middle") for name in ("no", "yes")
        ]
        kept = await worker.kept()
        assert (kept.replies, kept.drawn, kept.graded, kept.share) == (3, 2, 2, 0.5)
        assert kept.audits_nano == 4 * 30_000_000
        calls = {one.role: one.answer for one in (await worker.found("no")).trace.calls}
        assert calls == {"small": "7", "large": "4", "middle": "5"}
        assert await worker.auditor.once() == 0

    playing(where, play)


@pytest.mark.parametrize(
    ("error", "extra"), [("connection", {FALLBACK: 1.0}), (COOLING, {})], ids=["stood in", "alone"]
)
def test_an_audit_asks_who_failed_in_anothers_place_or_was_left_alone(
    where: str, error: str, extra: dict[str, float]
) -> None:
    failed = Call(round=1, role="large", error=CallError(error, "no"), extra=extra)

    def also(one: RequestRecord) -> RequestRecord:
        calls = [*one.trace.calls, failed]
        return replace(one, trace=msgspec.structs.replace(one.trace, calls=calls))

    async def play(worker: Worker) -> None:
        await worker.put(also(drawn("yes")), also(drawn("no", "7")))
        assert await worker.auditor.once() == 2
        kept = await worker.kept()
        assert (kept.graded, kept.share) == (2, 0.5)  # a failure would agree with neither
        assert await worker.auditor.once() == 0
        found = await worker.found("yes")
        assert [one.role for one in found.trace.calls] == ["small", "large", "middle", "large"]
        (trace,) = as_pool([found]).traces
        assert {one.role: one.answer for one in trace.calls} == {
            "small": "4",
            "middle": "5",
            "large": "4",
        }
        assert not trace.truncated

    playing(where, play)


def test_what_is_explored_is_completed_and_never_graded(where: str) -> None:
    decided = msgspec.structs.replace(AGREEMENT, explore=0.25, explored=True)

    async def play(worker: Worker) -> None:
        await worker.put(reply("q", decided, at=datetime.now(UTC)))
        assert await worker.auditor.once() == 1
        kept = await worker.kept()
        assert (kept.explored, kept.drawn, kept.graded) == (1, 0, 0)
        assert (kept.explored_nano, kept.audits_nano) == (60_000_000, 0)
        assert len((await worker.found("q")).trace.calls) == 3

    playing(where, play)


def test_another_process_takes_up_what_one_that_died_left(where: str) -> None:
    async def die(worker: Worker) -> None:
        await worker.put(*(drawn(f"q{k}") for k in range(5)))

    async def too_soon(worker: Worker) -> None:
        assert await worker.auditor.once() == 0  # they are another's for a minute
        await expire(worker)
        while await worker.auditor.once():
            pass
        kept = await worker.kept()
        assert (kept.drawn, kept.graded, kept.share) == (5, 5, 1.0)

    playing(where, die, too_soon)


def test_two_processes_that_take_up_the_same_ask_once(where: str) -> None:
    async def leave(worker: Worker) -> None:
        await worker.put(*(drawn(f"q{k}") for k in range(30)))
        await expire(worker)

    async def race(worker: Worker) -> None:
        traffic, watch = await open_traffic(where, None, keep_prompts=True), await open_watch(where)
        other = Auditor(watch.database, traffic, worker.asking, worker.auditor.policies, 4)
        try:
            while any(await asyncio.gather(worker.auditor.once(), other.once())):
                pass
        finally:
            await watch.aclose()
            await traffic.aclose()
        assert len(worker.asking.asked) == 60
        assert (await worker.kept()).graded == 30

    playing(where, leave, race)


def test_a_death_before_the_write_has_it_asked_again_and_graded_once(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(worker: Worker) -> None:
        await worker.put(drawn("q"))

        async def killed(*_: object) -> None:
            raise KilledError

        with monkeypatch.context() as patched:
            patched.setattr(worker.traffic, "attach", killed)
            with pytest.raises(KilledError):
                await worker.auditor.once()
        assert len(worker.asking.asked) == 2

    async def go_on(worker: Worker) -> None:
        await expire(worker)
        assert await worker.auditor.once() == 1
        kept = await worker.kept()
        assert (kept.graded, len((await worker.found("q")).trace.calls)) == (1, 3)

    playing(where, die, go_on)


def test_without_money_an_audit_waits_until_there_is_again(where: str) -> None:
    tomorrow = NOW + timedelta(days=1)
    limit = Limit("policy:audit", "usd", "day", 0)

    async def play(worker: Worker) -> None:
        worker.asking.answers = {"large": LimitError(limit, 5, 0, tomorrow), "middle": "5"}
        await worker.put(drawn("q"))
        for _ in range(MOST_TRIES + 3):
            assert await worker.auditor.once() in (0, 1)
        (row,) = await worker.watch.database.read("SELECT due_us, tries, state FROM audits")
        assert row == (microseconds(tomorrow), 0, "waiting")
        assert (await worker.kept()).graded == 0
        worker.asking.answers, worker.asking.asked = {"large": "4"}, []
        await expire(worker)
        assert await worker.auditor.once() == 1
        assert [one[0] for one in worker.asking.asked] == ["large"]  # the other is known
        kept = await worker.kept()
        assert (kept.graded, kept.audits_nano) == (1, 60_000_000)

    playing(where, play)


def test_a_model_that_goes_on_failing_leaves_an_audit_ungraded_and_counted(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audits, "FIRST_PAUSE", timedelta(0))
    failure = CallError("timeout", "too slow")

    async def play(worker: Worker) -> None:
        worker.asking.answers = {"large": failure, "middle": "5"}
        await worker.put(drawn("q"))
        rounds = 0
        while await worker.auditor.once():
            rounds += 1
        assert rounds == MOST_TRIES
        assert [one[0] for one in worker.asking.asked].count("middle") == 1
        kept = await worker.kept()
        assert (kept.drawn, kept.graded, kept.failed) == (1, 0, 1)

    playing(where, play)


def test_a_reference_that_refuses_is_an_answer_that_is_missing(where: str) -> None:
    async def play(worker: Worker) -> None:
        worker.asking.answers = {"large": CallError("refused", "no"), "middle": "5"}
        await worker.put(drawn("q"))
        await worker.auditor.once()
        kept = await worker.kept()
        assert (kept.graded, kept.share, kept.failed) == (1, 0.0, 0)

    playing(where, play)


def test_texts_that_are_not_kept_are_asked_from_memory_alone(where: str) -> None:
    secret = "Whose is ann@example.org?"

    async def with_memory(worker: Worker) -> None:
        await worker.put(drawn("q", question=secret))
        await worker.auditor.once()
        assert {one[2] for one in worker.asking.asked} == {secret}
        assert (await worker.kept()).graded == 1
        assert (await worker.found("q")).trace.question == "Whose is [e-mail]?"
        await worker.put(drawn("lost", question=secret))

    async def without(worker: Worker) -> None:
        await expire(worker)
        assert await worker.auditor.once() == 1
        assert worker.asking.asked == []
        kept = await worker.kept()
        assert (kept.drawn, kept.graded, kept.failed) == (2, 1, 1)

    playing(where, with_memory, without, redact=contacts)


def test_a_write_that_is_lost_is_made_again_without_asking(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play(worker: Worker) -> None:
        await worker.put(drawn("q"))
        attach = worker.traffic.attach

        async def lost(*_: object) -> None: ...

        with monkeypatch.context() as patched:
            patched.setattr(worker.traffic, "attach", lost)
            await worker.auditor.once()
        assert worker.traffic.attach == attach
        await worker.auditor.once()
        assert len(worker.asking.asked) == 2
        assert (await worker.kept()).graded == 1
        assert len((await worker.found("q")).trace.calls) == 3

    playing(where, play)

"""What passed is written without holding anybody up, and read again as it was."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from made_traffic import NOW, call, passed

from farthing.errors import StoreError
from farthing.traces.base import CallError
from farthing_gateway.recording import traffic as store
from farthing_gateway.recording import traffic_rows
from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.redaction import Redact, contacts
from farthing_gateway.recording.text_retention import TextRetention
from farthing_gateway.recording.traffic import Traffic, open_traffic
from farthing_gateway.storage.database import Row, Step, open_database
from farthing_gateway.storage.migrations import migrate


def playing(
    where: str,
    play: Callable[[Traffic], Awaitable[None]],
    redact: Redact | None = None,
    *,
    keep_prompts: bool = True,
) -> None:
    async def go() -> None:
        traffic = await open_traffic(where, redact, keep_prompts=keep_prompts)
        try:
            await play(traffic)
        finally:
            await traffic.aclose()

    asyncio.run(go())


async def read(traffic: Traffic, *arguments: Any) -> list[RequestRecord]:
    await traffic.flush()
    return [one async for one in traffic.read(*arguments)]


async def everything(where: str) -> str:
    """Return every field of every row as text."""
    database = await open_database(where)
    rows = await database.read("SELECT * FROM traffic_requests")
    await database.aclose()
    return str(rows)


class Failing:
    """A database that is away for some writes."""

    def __init__(self, failures: int) -> None:
        self.failures, self.steps = failures, list[Step]()

    async def write(self, *steps: Step) -> int:
        if self.failures:
            self.failures -= 1
            raise StoreError("away")
        self.steps += steps
        return 1

    async def read(self, sql: str, *values: Any) -> list[Row]:
        return []

    async def aclose(self) -> None: ...


def test_what_is_read_is_what_was_put(where: str) -> None:
    every = replace(
        passed("a"), key="01234567", policy="mine", saved_nano=-5, latency_s=0.25, promise="parity"
    )
    odd = passed("b\u2028", at=NOW + timedelta(microseconds=1), question="é \0 \u2028 \x85 \n")
    bare = replace(passed("c", at=NOW + timedelta(days=1)), messages=None)

    async def play(traffic: Traffic) -> None:
        for one in (every, odd, bare):
            traffic.put(one)
        assert await read(traffic) == [every, odd, bare]
        traffic.put(replace(every, model="again"))
        assert await read(traffic) == [every, odd, bare]

    playing(where, play)


def test_a_lone_surrogate_and_a_nul_in_a_name_are_written_otherwise(where: str) -> None:
    async def play(traffic: Traffic) -> None:
        traffic.put(passed("a", question="\ud800", conversation="x\0y"))
        (found,) = await read(traffic)
        assert (found.trace.question, found.conversation) == ("?", "x\ufffdy")

    playing(where, play)


def test_many_pages_come_in_the_order_of_time(where: str) -> None:
    async def play(traffic: Traffic) -> None:
        for i in range(1_001):
            traffic.put(passed(f"q{i:04}", at=NOW + timedelta(seconds=i // 3)))
        found = await read(traffic)
        assert [one.id for one in found] == [f"q{i:04}" for i in range(1_001)]

    playing(where, play)


def test_what_is_read_since_a_moment_are_whole_conversations(where: str) -> None:
    later = NOW + timedelta(hours=1)

    async def play(traffic: Traffic) -> None:
        traffic.put(passed("a1", conversation="a", at=NOW))
        traffic.put(passed("a2", conversation="a", at=later))
        traffic.put(passed("b1", conversation="b", at=later))
        traffic.put(passed("b2", conversation="b", at=later + timedelta(hours=1), policy="mine"))
        assert [one.id for one in await read(traffic, None, later)] == ["b1", "b2"]
        assert [one.id for one in await read(traffic, None, NOW)] == ["a1", "a2", "b1", "b2"]
        assert [one.id for one in await read(traffic, "mine", None)] == ["b2"]

    playing(where, play)


def test_later_calls_stand_beside_the_first(where: str) -> None:
    small = call("small", answer="4\u2028", cost_usd=0.001)

    async def play(traffic: Traffic) -> None:
        one = passed("a")
        traffic.put(one)
        await traffic.attach("a", [small, call("large", answer="other")])
        await traffic.attach("a", [call("small", answer="other"), call("tiny")])
        await traffic.attach("gone", [small])
        (found,) = await read(traffic)
        assert found.trace.calls == [*one.trace.calls, small, call("tiny")]

    playing(where, play)


def test_retention_deletes_what_is_older_and_nothing_else(where: str) -> None:
    async def play(traffic: Traffic) -> None:
        for i in range(1_200):
            traffic.put(passed(f"q{i}", at=NOW - timedelta(microseconds=i)))
        await traffic.flush()
        assert await traffic.delete_before(NOW) == 1_199
        assert await traffic.delete_before(NOW) == 0
        assert [one.id for one in await read(traffic)] == ["q0"]

    playing(where, play)


def test_nothing_is_lost_on_a_graceful_end(where: str) -> None:
    async def put(traffic: Traffic) -> None:
        for i in range(1_300):
            traffic.put(passed(f"q{i}"))

    async def count(traffic: Traffic) -> None:
        assert len(await read(traffic)) == 1_300

    playing(where, put)
    playing(where, count)


def test_what_comes_after_the_end_is_dropped_and_counted(tmp_path: object) -> None:
    async def go() -> None:
        await migrate(f"{tmp_path}/farthing.db")
        traffic = await open_traffic(f"{tmp_path}/farthing.db", None, keep_prompts=True)
        await traffic.aclose()
        traffic.put(passed("a"))
        assert traffic.dropped == 1

    asyncio.run(go())


def test_a_full_queue_drops_and_says_how_much(where: str) -> None:
    async def go() -> None:
        traffic = Traffic(await open_database(where), TextRetention(), waiting=10)
        began = time.process_time()
        for i in range(10_000):
            traffic.put(passed(f"q{i}"))
        assert time.process_time() - began < 2
        assert traffic.dropped == 9_990
        assert len(await read(traffic)) == 10
        traffic.put(passed("q10"))
        await traffic.aclose()
        database = await open_database(where)
        assert await database.read("SELECT what, number FROM traffic_losses") == [("dropped", 9990)]
        await database.aclose()

    asyncio.run(go())


def test_losses_of_several_processes_add_up(where: str) -> None:
    async def go() -> None:
        for _ in range(2):
            traffic = Traffic(await open_database(where), TextRetention(), waiting=0)
            traffic.put(passed("a"))
            await traffic.aclose()
        database = await open_database(where)
        assert await database.read("SELECT what, number FROM traffic_losses") == [("dropped", 2)]
        await database.aclose()

    asyncio.run(go())


def test_a_batch_is_one_transaction_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PAUSE_S", 0.0)

    async def go() -> None:
        database = Failing(store.TRIES - 1)
        traffic = Traffic(database, TextRetention())
        for i in range(100):
            traffic.put(passed(f"q{i}"))
        await traffic.flush()
        assert traffic.dropped == 0
        (inserted,) = [step for step in database.steps if step.sql == traffic_rows.INSERT]
        assert len(inserted.rows) == 100
        await traffic.aclose()

    asyncio.run(go())


def test_a_database_that_stays_away_costs_records_and_stops_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "PAUSE_S", 0.0)

    async def go() -> None:
        database = Failing(store.TRIES)
        traffic = Traffic(database, TextRetention())
        traffic.put(passed("a"))
        await traffic.attach("a", [call("small")])
        assert traffic.dropped == 2
        traffic.put(passed("b"))
        await traffic.aclose()
        told = {traffic_rows.INSERT, traffic_rows.LOSE}
        written = [step for step in database.steps if step.sql in told]
        assert [row[0] for step in written for row in step.rows] == ["b", "dropped"]

    asyncio.run(go())


def test_one_bad_record_takes_no_other_with_it(where: str) -> None:
    broken = msgspec.structs.replace(call("large"), cost_usd=float("nan"))
    trace = msgspec.structs.replace(passed("bad").trace, calls=[broken])

    async def play(traffic: Traffic) -> None:
        traffic.put(replace(passed("bad"), trace=trace))
        traffic.put(replace(passed("worse"), messages=[object()]))
        traffic.put(passed("good"))
        assert [one.id for one in await read(traffic)] == ["good"]
        assert traffic.dropped == 2

    playing(where, play)


def test_without_prompts_no_text_of_anybody_is_kept(where: str) -> None:
    full = texts_everywhere("SECRET")

    async def play(traffic: Traffic) -> None:
        traffic.put(full)
        await traffic.attach("a", [call("small", answer="SECRET", text="SECRET")])
        (found,) = await read(traffic)
        assert found.messages is None
        assert [one.cost_usd for one in found.trace.calls] == [0.01] * 3
        assert "SECRET" not in await everything(where)

    playing(where, play, keep_prompts=False)


def texts_everywhere(text: str) -> RequestRecord:
    """Return a record that has a text wherever one may be."""
    failed = msgspec.structs.replace(
        call("tiny", answer=text, text=text), error=CallError("refused", f"no: {text}")
    )
    one = passed("a", question=text, calls=[call("large", answer=text, text=text), failed])
    image = {"type": "image_url", "image_url": {"url": text}}
    spoken = {"role": "user", "content": [{"type": "text", "text": text}, image]}
    tool = {"function": {"name": "mail", "arguments": f'{{"to": "{text}"}}'}}
    messages = [spoken, {"role": "assistant", "tool_calls": [tool]}]
    trace = msgspec.structs.replace(one.trace, gold=[text])
    return replace(one, messages=messages, trace=trace)


def test_redaction_goes_over_questions_messages_and_replies(where: str) -> None:
    async def play(traffic: Traffic) -> None:
        traffic.put(texts_everywhere("Write to ann@example.org"))
        await traffic.attach("a", [call("small", answer="bob@example.org", text="bob@example.org")])
        (found,) = await read(traffic)
        assert "example.org" not in await everything(where)
        assert found.trace.question == "Write to [e-mail]"
        assert found.messages is not None
        assert found.messages[0]["role"] == "user"
        assert found.messages[0]["content"][0] == {"type": "text", "text": "Write to [e-mail]"}
        assert [one.text for one in found.trace.calls] == [
            *["Write to [e-mail]"] * 2,
            "[e-mail]",
        ]
        assert traffic.unredacted == 0

    playing(where, play, contacts)


def test_two_answers_do_not_become_one_by_redaction(where: str) -> None:
    async def play(traffic: Traffic) -> None:
        calls = [call("large", answer="ann@x.org"), call("small", answer="bob@x.org"), call("tiny")]
        traffic.put(passed("a", calls=calls))
        (found,) = await read(traffic)
        assert [one.answer for one in found.trace.calls] == [None, None, "4"]

    playing(where, play, contacts)


def raising(text: str) -> str:
    raise RuntimeError(text)


def returning_none(text: str) -> Any:
    return None


def failing_on_replies(text: str) -> str:
    return raising(text) if "REPLY" in text else text


@pytest.mark.parametrize("hook", [raising, returning_none])
def test_a_hook_that_fails_lets_no_text_through(
    where: str, hook: Redact, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def play(traffic: Traffic) -> None:
        traffic.put(texts_everywhere("SECRET"))
        await traffic.attach("a", [call("small", answer="SECRET", text="SECRET")])
        (found,) = await read(traffic)
        assert len(found.trace.calls) == 3
        assert "SECRET" not in await everything(where) + caplog.text
        assert (traffic.unredacted, traffic.dropped) == (2, 0)

    playing(where, play, hook)


def test_a_hook_that_fails_on_one_text_costs_all_texts_of_the_record(where: str) -> None:
    async def play(traffic: Traffic) -> None:
        traffic.put(passed("a", question="A", calls=[call("large", text="REPLY")]))
        traffic.put(passed("b", question="B"))
        a, b = await read(traffic)
        assert (a.trace.question, a.messages, b.trace.question) == ("", None, "B")
        assert traffic.unredacted == 1

    playing(where, play, failing_on_replies)


KEYS: Sequence[str] = (
    "fk-01234567-" + "aB3_-" * 8 + "xyz",
    "sk-proj-abcDEF0123456789",
    "sk-1",
    "Bearer abcdefghijk",
    "SK-LIVE-abc",
)


@pytest.mark.parametrize("key", KEYS)
def test_a_planted_key_is_never_written(
    where: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    planted = replace(
        texts_everywhere(f"it is {key}, or\\n{key}"),
        key=key,
        conversation=key,
        policy=key,
        model=key,
        promise=key,
    )

    async def play(traffic: Traffic) -> None:
        traffic.put(planted)
        await traffic.attach("a", [call(key, answer=key, text=f"<{key}>")])
        await traffic.flush()
        written = await everything(where)
        secret = key.removeprefix("Bearer ")
        assert "it is [key]" in written
        if len(secret) >= 20:  # also behind the letter of an escaped line end
            assert secret not in written + caplog.text
        assert f" {secret}" not in written
        assert f"<{secret}" not in written
        assert f"'{secret}" not in written

    playing(where, play)


def test_files_in_a_message_are_left_out(where: str) -> None:
    url = "data:image/png;base64," + "QUJD" * 2_000

    async def play(traffic: Traffic) -> None:
        traffic.put(replace(passed("a"), messages=[{"role": "user", "content": url}]))
        (found,) = await read(traffic)
        assert found.messages == [{"role": "user", "content": "[8022 characters left out]"}]

    playing(where, play)


def test_moments_are_exact_in_any_zone(where: str) -> None:
    at = datetime.fromisoformat("2026-03-29T03:30:00.000001+02:00")

    async def play(traffic: Traffic) -> None:
        traffic.put(passed("a", at=at))
        (found,) = await read(traffic)
        assert (found.at, found.at.tzinfo) == (at, UTC)

    playing(where, play)

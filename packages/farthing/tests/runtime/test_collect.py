"""Collection over HTTP and with scripted models: the cap, the log, resuming, failing, stopping."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from collected_alike import *  # noqa: F403
from collected_alike import DOLLAR, Write, log, readable, run, say, traces

from farthing.errors import (
    AuthenticationError,
    InputError,
    ModelTimeoutError,
    StoreError,
    UnpricedModelError,
)
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.retry import Retrying, RetryPolicy
from farthing.models.scripted import Reply, ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.base import Turn
from farthing.runtime.collect import price
from farthing.runtime.journal import StoreJournal
from farthing.runtime.meter import Meter
from farthing.runtime.protocol import ask_agent
from farthing.tasks.base import Question
from farthing.traces.base import Call
from farthing.traces.store import Store

MODE = "independent"


def test_each_call_says_the_most_that_it_could_have_cost(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    """Together they are what a dry run foresees of independent attempts, sent one by one."""
    job = write(endpoint.url, head="rounds = 3")
    foreseen, _ = price(job, tmp_path / "a.db", DOLLAR)
    run(job, tmp_path / "a.db")
    calls = [call for trace in traces(tmp_path / "a.db").values() for call in trace.calls]
    largest = [call.largest_cost_usd or 0 for call in calls]
    assert round(sum(largest) * DOLLAR) == foreseen.largest_nano
    for call, most in zip(calls, largest, strict=True):
        rate = {"small": 1e-6, "large": 1e-5}[call.model or ""]
        assert 1_024 * rate < most < 2 * 1_024 * rate
        assert call.cost_usd is not None
        assert 0 < call.cost_usd < most


def test_where_lost_tries_made_a_call_dearer_the_most_is_what_was_paid() -> None:
    failed = ModelTimeoutError("slow", cost_nano=800)

    class Dear(ScriptedModel):
        def largest_cost_nano(self, prompt: Prompt) -> int:
            return 1_000

    async def one_call(*replies: Reply) -> Call:
        left = iter(replies)
        model = Retrying(Dear(lambda _: next(left)), RetryPolicy(first_s=0.0))
        turn = Turn(Question("q", "?"), 1)
        return await ask_agent(BaseAgent(model), turn, Meter().client)

    reply = Completion("4", "m", "stop", Usage(1, 1), 300, 0.0)
    for failures, largest in ((0, 1_000), (1, 1_100), (2, 1_900)):
        call = asyncio.run(one_call(*[failed] * failures, reply))
        assert call.cost_usd == (failures * 800 + 300) / DOLLAR
        assert call.largest_cost_usd == largest / DOLLAR


def test_independent_attempts_are_calls_of_their_own(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.answer = say
    job = write(endpoint.url, head="rounds = 3")
    run(job, tmp_path / "a.db")
    stored = traces(tmp_path / "a.db")
    assert all(trace.independent and len(trace.calls) == 6 for trace in stored.values())
    assert [c.verdict for c in stored["q0"].calls] == [None, True] * 3
    assert len(endpoint.requests) == 60


def test_a_pool_asks_each_model_once(write: Write, endpoint: Endpoint, tmp_path: Path) -> None:
    run(write(endpoint.url, head='pool = ["small", "large"]'), tmp_path / "a.db")
    for trace in traces(tmp_path / "a.db").values():
        assert trace.independent
        assert [(c.round, c.role, c.model) for c in trace.calls] == [
            (1, "small", "small"),
            (1, "large", "large"),
        ]


def test_a_second_run_asks_nobody(write: Write, endpoint: Endpoint, tmp_path: Path) -> None:
    job, store = write(endpoint.url), tmp_path / "a.db"
    run(job, store)
    asked = len(endpoint.requests)
    again = run(job, store)
    assert (len(endpoint.requests), again.earlier, again.progress.total) == (asked, 10, 0)


@pytest.mark.slow
def test_the_cap_stops_it_cleanly_and_a_higher_one_goes_on(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.answer = readable
    whole = run(write(endpoint.url, 30), tmp_path / "whole.db").balance.settled_nano
    assert len(traces(tmp_path / "whole.db")) == 30
    endpoint.answered.clear()
    job, store = write(endpoint.url, 30), tmp_path / "a.db"
    cap = whole * 2 // 3
    first = run(job, store, cap)
    assert first.progress.stopped is not None
    assert "raise the cap" in first.progress.stopped
    assert first.progress.left > 0
    assert first.balance.reserved_nano == 0
    assert first.balance.settled_nano <= cap
    assert first.progress.failed == {}
    # The last call must still fit with its largest cost.
    second = run(job, store, whole + 20_000_000)
    assert second.progress.left == 0
    assert traces(store) == traces(tmp_path / "whole.db")
    assert second.balance.settled_nano == whole


def test_200_calls_at_once_against_a_cap_worth_five(tmp_path: Path) -> None:
    reply = Completion("4", "m", "stop", Usage(1, 1), 1_000, 0.0)
    asked = []

    def answer(prompt: Prompt) -> Completion:
        asked.append(prompt)
        return reply

    class Dear(ScriptedModel):
        def largest_cost_nano(self, prompt: Prompt) -> int:
            return 1_000

    async def calls() -> list[object]:
        meter = Meter(journal)
        model = Dear(answer, latency_s=0.01)
        base = BaseAgent(model)
        clients = [meter.client(Question(f"q{k}", "?"), 1, base) for k in range(200)]
        prompt = Prompt((Message("user", "?"),))
        return await asyncio.gather(
            *(client.ask(model, prompt) for client in clients), return_exceptions=True
        )

    with Store.open(tmp_path / "a.db") as store:
        journal = StoreJournal(store, 5_000, "test")
        results = asyncio.run(calls())
        assert journal.balance().settled_nano == 5_000
    assert len(asked) == 5
    assert sum(isinstance(one, Completion) for one in results) == 5


def test_calls_wait_for_what_others_do_not_use(tmp_path: Path) -> None:
    """A cap worth two reservations serves many calls that turn out cheap."""

    class Dear(ScriptedModel):
        def largest_cost_nano(self, prompt: Prompt) -> int:
            return 1_000

    async def calls() -> list[Completion]:
        meter = Meter(journal)
        cheap = Completion("4", "m", "stop", Usage(1, 1), 10, 0.0)
        model = Dear(lambda _: cheap, latency_s=0.001)
        base = BaseAgent(model)
        clients = [meter.client(Question(f"q{k}", "?"), 1, base) for k in range(50)]
        prompt = Prompt((Message("user", "?"),))
        return list(await asyncio.gather(*(client.ask(model, prompt) for client in clients)))

    with Store.open(tmp_path / "a.db") as store:
        journal = StoreJournal(store, 2_000, "test")
        assert len(asyncio.run(calls())) == 50
        assert journal.balance().settled_nano == 500


def test_a_wrong_key_ends_it_and_is_in_no_file(
    write: Write, endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aiohttp import web  # noqa: PLC0415

    def refuse(body: dict[str, Any]) -> web.Response:
        return web.json_response({"error": {"message": "bad key sk-very-secret-9876"}}, status=401)

    job, store = write(endpoint.url), tmp_path / "a.db"
    run(job, store)
    endpoint.reply = refuse
    with pytest.raises(AuthenticationError):
        run(write(endpoint.url, 20), store)
    assert log(store, "SELECT count(*) FROM call_log WHERE error_type = 'authentication'") != [(0,)]
    for file in tmp_path.iterdir():
        assert b"secret-9876" not in file.read_bytes(), file


def test_a_dry_run_asks_nobody_and_bounds_what_is_paid(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    job, store = write(endpoint.url), tmp_path / "a.db"
    before, _ = price(job, store, DOLLAR)
    assert (endpoint.requests, store.exists()) == ([], False)
    assert (before.questions, before.acts, before.likely_nano) == (
        10,
        {"base": 20, "guide": 20},
        None,
    )
    spent = run(job, store).balance.settled_nano
    assert 0 < spent <= before.largest_nano
    more, _ = price(write(endpoint.url, 20), store, DOLLAR)
    assert more.questions == 10
    assert more.likely_nano == pytest.approx(spent, rel=0.1)


def test_another_job_is_refused_in_the_same_store(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    run(write(endpoint.url, 3), tmp_path / "a.db")
    with pytest.raises(InputError, match="other rounds, roles"):
        run(write(endpoint.url, 3, head="rounds = 3"), tmp_path / "a.db")


def test_one_collection_at_a_time(write: Write, endpoint: Endpoint, tmp_path: Path) -> None:
    from farthing.runtime.journal import exclusive_lock  # noqa: PLC0415

    job = write(endpoint.url, 1)
    with exclusive_lock(tmp_path / "a.db"), pytest.raises(StoreError, match="no other collection"):
        run(job, tmp_path / "a.db")
    assert endpoint.requests == []


def test_an_unpriced_model_is_refused_before_anything_is_asked(
    write: Write, endpoint: Endpoint, tmp_path: Path
) -> None:
    job = write(endpoint.url)
    from farthing.models.prices import PriceTable  # noqa: PLC0415

    unpriced = replace(job, models=replace(job.models, prices=PriceTable({})))
    with pytest.raises(UnpricedModelError, match="under \\[prices\\]"):
        run(unpriced, tmp_path / "a.db")
    assert endpoint.requests == []

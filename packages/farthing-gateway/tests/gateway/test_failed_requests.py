"""What is refused or fails has an id in its reply, and a row that is found by it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import Reply, gateway, models, serve_section
from serving import total, until

from farthing.errors import StoreError
from farthing_gateway.recording.failures import FailedRequest, FailureFilter, find_in
from farthing_gateway.recording.redaction import contacts
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.migrations import migrate

RECORD = "\n[record]\nshare = 0.0\n"
BUDGET = "\n[[budgets]]\nof = 'model:small'\nper = 'total'\nusd = 0.0\n"


def found(database: str, **of: Any) -> list[FailedRequest]:
    return asyncio.run(find_in(database, FailureFilter(**of)))


def noted(database: str, reply: Reply) -> FailedRequest:
    """Return the row that a reply names, once it is written."""
    until(lambda: bool(found(database, id=reply.headers["X-Farthing-Trace"])))
    (row,) = found(database, id=reply.headers["X-Farthing-Trace"])
    return row


def made_key(database: str, *names: str) -> tuple[str, dict[str, str]]:
    """Make a key for some models; return its id, and the header that it opens with."""

    async def make() -> tuple[str, str]:
        await migrate(database)
        keys = await open_keys(database)
        try:
            record, secret = await keys.make("app", None, ["call"], models=names)
        finally:
            await keys.aclose()
        return record.id, secret

    id_, secret = asyncio.run(make())
    return id_, {"Authorization": f"Bearer {secret}"}


def test_every_refusal_is_a_row(tmp_path: Path, where: str) -> None:
    key, opens = made_key(where, "large", "small")
    text = serve_section(keys=True, database=where, most_body_bytes=2_000)
    with Endpoint() as stub, gateway(tmp_path, text + models(stub.url) + BUDGET + RECORD) as one:
        once = opens | {"Idempotency-Key": "one"}
        assert one.chat("large", "first", headers=once).status == 200
        replies = [
            (400, "invalid_request_error", None, one.post(b"{", opens)),
            (400, "invalid_request_error", "large", one.chat("large", "x", headers=opens, n=0)),
            (413, "too_large", None, one.chat("large", "x" * 3_000, headers=opens)),
            (404, "model_not_found", None, one.chat("other", "x", headers=opens)),
            (402, "budget_exceeded", "small", one.chat("small", "x", headers=opens)),
            (422, "idempotency_key_reused", "large", one.chat("large", "two", headers=once)),
        ]
        for status, code, model, reply in replies:
            assert reply.status == status
            row = noted(where, reply)
            assert (row.status, row.code, row.key) == (status, code, key)
            assert row.said == reply.json["error"]["message"]
            assert (row.tries, row.cost_nano) == ((), 0)
            assert row.model == (model if status != 400 else None)
        stranger = one.chat("large", "x")
        assert stranger.status == 401
        assert stranger.headers["X-Farthing-Trace"]
    assert len(found(where)) == len(replies), "what strangers send fills no disk"
    assert [one.status for one in found(where, model="small", status=402, key=key)] == [402]
    assert not found(where, key="00000000")
    assert [row.code for row in found(where, text="LONGER than")] == ["too_large"]
    assert not found(where, text="longer%than")
    assert len(found(where, most=2)) == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "status", "code", "charged"),
    [
        ("reset", 502, "upstream_connection", True),
        ("500", 502, "upstream_connection", False),
        ("429", 429, "upstream_rate_limit", False),
    ],
)
def test_every_failure_is_a_row_with_its_tries_and_their_cost(
    tmp_path: Path, fault: str, status: int, code: str, charged: bool, *, stream: bool
) -> None:
    database = str(tmp_path / "gateway.db")
    with Endpoint(faults={fault: 1.0}) as stub:
        text = serve_section() + models(stub.url, tries=2).replace("s = 2", "s = 2, first_s = 0.01")
        with gateway(tmp_path, text + RECORD) as running:
            reply = running.chat("large", "two words", stream=stream)
            row = noted(database, reply)
    assert (reply.status, row.status, row.code, row.model) == (status, status, code, "large")
    assert [(one["model"], one.get("error")) for one in row.tries] == [
        ("large", code.removeprefix("upstream_"))
    ] * 2
    assert row.cost_nano == total(database).settled.nano
    assert (row.cost_nano > 0) == charged
    assert row.latency_s > 0


def test_a_stream_that_breaks_is_a_row(tmp_path: Path) -> None:
    database = str(tmp_path / "gateway.db")
    with (
        Endpoint(faults={"garbage": 1.0}) as stub,
        gateway(tmp_path, serve_section() + models(stub.url) + RECORD) as running,
    ):
        reply = running.chat("large", "two words", stream=True)
        row = noted(database, reply)
    assert reply.status == 200
    code = json.loads(reply.events[-2])["error"]["code"]
    assert (row.status, row.code) == (502, code)
    assert row.cost_nano == total(database).settled.nano > 0


def test_a_deadline_is_a_row(tmp_path: Path) -> None:
    with (
        Endpoint(latency_s=20) as stub,
        gateway(tmp_path, serve_section() + models(stub.url) + RECORD) as running,
    ):
        reply = running.chat("large", "x", farthing={"deadline": 0.3})
        row = noted(str(tmp_path / "gateway.db"), reply)
    assert (row.status, row.code, len(row.tries)) == (504, "deadline_exceeded", 1)
    assert row.cost_nano > 0


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("prompts = false", ""),
        ('redact = "farthing_gateway.recording.redaction:contacts"', "[e-mail]"),
    ],
)
def test_a_row_has_no_text_that_may_not_be_kept(tmp_path: Path, record: str, said: str) -> None:
    assert contacts("ada@example.org") == "[e-mail]"
    with gateway(
        tmp_path, serve_section() + models("http://127.0.0.1:9/v1") + RECORD + record + "\n"
    ) as running:
        row = noted(str(tmp_path / "gateway.db"), running.chat("ada@example.org", "x"))
    assert "ada@" not in row.said
    assert row.model is None
    assert said in row.said
    assert bool(row.said) == bool(said)


def test_rows_end_with_the_traffic(tmp_path: Path, where: str) -> None:
    with Endpoint(faults={"500": 1.0}) as stub:
        text = serve_section(database=where) + models(stub.url) + RECORD
        with gateway(tmp_path, text) as running:
            noted(where, running.chat("large", "x"))
    (row,) = found(where)

    async def forget() -> None:
        traffic = await open_traffic(where, None, keep_prompts=True)
        await traffic.delete_before(row.at)
        assert await asyncio.to_thread(found, where) == [row]
        await traffic.delete_before(row.at.replace(year=row.at.year + 1))
        await traffic.aclose()

    asyncio.run(forget())
    assert not found(where)


def test_a_database_that_is_no_gateways_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such database"):
        found(str(tmp_path / "none.db"))

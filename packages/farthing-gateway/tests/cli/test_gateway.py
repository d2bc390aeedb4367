"""`farthing keys` and `farthing traffic`: a gateway's database from the command line."""

import asyncio
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_traffic import NOW, call, passed

from farthing.traces.store import Store
from farthing_gateway.recording.failures import FailedRequest
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.keys import KeyRecord, open_keys
from farthing_gateway.storage.migrations import migrate

Farthing = Callable[..., Any]
Refused = Callable[..., str]
MAKE = ("keys", "make", "ci", "--database", "farthing.db")


def found(secret: str) -> KeyRecord | None:
    async def go() -> KeyRecord | None:
        await migrate("farthing.db")
        keys = await open_keys("farthing.db")
        try:
            return await keys.find(secret)
        finally:
            await keys.aclose()

    return asyncio.run(go())


def test_a_key_is_shown_once_and_opens(farthing: Farthing) -> None:
    limits = ("--usd", "5", "--per", "day", "--calls", "100/minute", "--days", "3")
    made = farthing(*MAKE, *limits, "--team", "web", "--model", "small", "--scope", "read")
    secret = made.out.splitlines()[0]
    record = found(secret)
    assert made.code == 0
    assert re.fullmatch(r"fk-[0-9a-f]{8}-[\w-]{43}", secret)
    assert record is not None
    assert record.expires_at is not None
    assert abs(record.expires_at - datetime.now(UTC) - timedelta(days=3)) < timedelta(minutes=5)
    assert (record.team, record.models, record.scopes) == ("web", ("small",), frozenset(["read"]))
    assert [(limit.unit, limit.period, limit.most) for limit in record.limits] == [
        ("usd", "day", 5 * 10**9),
        ("calls", "minute", 100),
    ]
    listed = farthing("keys", "list", "--database", "farthing.db")
    assert "read; small; $5 a day; 100 calls a" in " ".join(listed.out.split())
    assert secret not in listed.out + listed.err + made.err


def test_a_revoked_key_opens_nothing(farthing: Farthing, refused: Refused) -> None:
    document = json.loads(farthing(*MAKE, "--json").out)
    assert found(document["key"]) is not None
    ended = json.loads(farthing("keys", "revoke", "ci", "--database", "farthing.db", "--json").out)
    assert ended["revoked_at"] is not None
    assert found(document["key"]) is None
    (listed,) = json.loads(farthing("keys", "list", "--database", "farthing.db", "--json").out)
    assert listed == ended
    assert "key" not in listed
    line = refused("keys", "revoke", "nobody", "--database", "farthing.db")
    assert "unknown key 'nobody'. Known: ci" in line


def test_a_keys_limit_is_changed(farthing: Farthing, refused: Refused) -> None:
    secret = farthing(*MAKE, "--usd", "5/day", "--calls", "9/minute").out.splitlines()[0]
    limit = ("keys", "limit", "ci", "--database", "farthing.db")
    done = farthing(*limit, "--usd", "10", "--per", "day", "--end", "calls/minute")
    assert "$10 a day" in " ".join(done.out.split())
    record = found(secret)
    assert record is not None
    assert [(one.unit, one.period, one.most) for one in record.limits] == [
        ("usd", "day", 10 * 10**9)
    ]
    assert "nothing would change" in refused(*limit)
    assert "names no limit" in refused(*limit, "--end", "usd")


def test_the_configuration_names_the_database(farthing: Farthing, refused: Refused) -> None:
    Path("serve.toml").write_text('[serve]\ndatabase = "farthing.db"\n')
    assert farthing("keys", "make", "ci", "--config", "serve.toml").code == 0
    assert "ci" in farthing("keys", "list", "--database", "farthing.db").out
    doubted = farthing("keys", "make", "two", "--config", "serve.toml", "--model", "nosuch")
    assert "note: serve.toml has no model 'nosuch'" in doubted.err
    Path("serve.toml").write_text('[serve]\ndatabase = "farthing.db"\n[models.o4]\n')
    known = farthing("keys", "make", "three", "--config", "serve.toml", "--model", "o4@low")
    assert "has no model" not in known.err
    Path("sub").mkdir()
    Path("sub/serve.toml").write_text('[serve]\ndatabase = "its.db"\n')
    assert farthing("keys", "make", "ci", "--config", "sub/serve.toml").code == 0
    assert Path("sub/its.db").is_file()  # where `farthing serve` looks for it
    Path("serve.toml").write_text("[serve]\n")
    assert "serve.database: is missing" in refused("keys", "list", "--config", "serve.toml")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("keys", "make", "ci"), "give the gateway's database"),
        (("keys", "list", "--database", "absent.db"), "there is no such database"),
        ((*MAKE, "--usd", "5/week"), "'week' is no period"),
        ((*MAKE, "--usd", "nan"), "is no amount"),
        ((*MAKE, "--usd", "-1"), "is no amount"),
        ((*MAKE, "--calls", "1.5"), "is no amount"),
        ((*MAKE, "--scope", "cal"), "did you mean 'call'?"),
        ((*MAKE, "--days", "0"), "expired already"),
        (("keys", "make", "a b", "--database", "farthing.db"), "cannot name a key"),
        (("traffic", "show", "--database", "absent.db"), "there is no such database"),
        (
            ("traffic", "export", "--database", "absent.db", "--out", "t.csv"),
            "cannot tell its form",
        ),
    ],
)
def test_wrong_input_is_one_line(refused: Refused, arguments: tuple[str, ...], said: str) -> None:
    assert said in refused(*arguments)


@pytest.fixture
def day(tmp_path: Path) -> str:
    """Return the database of a day: `large` answered, and `small` in shadow but for ten times."""
    where = str(tmp_path / "day.db")
    rng = np.random.default_rng(0)

    async def go() -> None:
        await migrate(where)
        traffic = await open_traffic(where, None, keep_prompts=True)
        for i in range(400):
            question = f"What is {i} + 1?"
            at = NOW + timedelta(seconds=i)
            calls = [call("large", str(i + 1), cost_usd=0.01)]
            traffic.put(passed(f"q{i}", at=at, question=question, calls=calls))
        await traffic.flush()
        said = [str(i + 1) if rng.random() < 0.99 else "0" for i in range(390)]
        shadow = [
            traffic.attach(f"q{i}", [call("small", answer, cost_usd=0.0001)])
            for i, answer in enumerate(said)
        ]
        await asyncio.gather(*shadow)
        await traffic.aclose()

    asyncio.run(go())
    return where


@pytest.mark.slow
def test_a_days_traffic_becomes_a_recommendation(farthing: Farthing, day: str) -> None:
    exported = farthing("traffic", "export", "--database", day, "--out", "traces.jsonl.gz")
    assert exported.code == 0
    assert "400 questions" in exported.err
    assert "390 have an answer of each of large, small" in exported.err
    said = ("--promise", "agreement", "--reference", "large", "--json")
    done = farthing("recommend", "--traces", "traces.jsonl.gz", *said)
    assert done.code == 0, done.err
    assert json.loads(done.out)["reference"]["name"] == "large"


@pytest.mark.slow
def test_the_same_commands_do_the_next_day(farthing: Farthing, tmp_path: Path) -> None:
    """A day that proves nothing, then one that does: into the same store, into the same bundle."""
    where = str(tmp_path / "share.db")

    async def day(number: int, tried: int) -> None:
        await migrate(where)
        traffic = await open_traffic(where, None, keep_prompts=True)
        for i in range(400):
            answer, name = str(i % 3), f"{number}-{i}"
            calls = [call("large", answer, cost_usd=0.01)]
            if i % tried == 0:
                calls.append(call("small", answer, cost_usd=0.0001))
            at = NOW + timedelta(days=number, seconds=i)
            question = f"What is {name}?"
            traffic.put(passed(name, at=at, question=question, policy="mine", calls=calls))
        if number:  # a model that was asked after the export of the day before
            await traffic.attach("0-1", [call("small", "1", cost_usd=0.0001)])
        await traffic.aclose()

    export = ("traffic", "export", "--database", where, "--policy", "mine", "--out", "day.db")
    recommend = ("recommend", "--traces", "day.db", "--promise", "agreement", "--out", "bundle")
    asyncio.run(day(0, 8))
    assert "already" not in farthing(*export).err
    first = farthing(*recommend, "--details")
    assert first.code == 1, first.err
    said = " ".join(first.out.split())
    (prove,) = re.findall(r"([\d,]+) proved[;.] ", said)
    requests = math.ceil(400 / int(prove))
    assert f"Every model answered 50 of 400 requests, and {prove} of those prove: one in" in said
    assert f"one in some {requests} requests" in said
    assert "Next: let the gateway record more" in said

    asyncio.run(day(1, 1))
    again = farthing(*export)
    assert "wrote 800 questions to day.db, 400 of which it had already; 451 have" in again.err
    with Store.read("day.db") as store:
        stored = list(store.traces())
    assert len({one.id for one in stored}) == len(stored) == 800
    assert sum(len(one.calls) == 2 for one in stored) == 451
    second = farthing(*recommend)
    assert second.code == 0, second.err
    assert 'bundle = "bundle"` in the policy' in " ".join(second.out.split())
    third = farthing(*recommend)
    assert third.code == 2
    assert "holds a proved bundle" in third.err


def test_export_says_why_nothing_fits(farthing: Farthing, refused: Refused) -> None:
    async def go() -> None:
        await migrate("farthing.db")
        traffic = await open_traffic("farthing.db", None, keep_prompts=True)
        traffic.put(passed("a"))
        traffic.outside("support", "temperature")
        await traffic.aclose()

    asyncio.run(go())
    export = ("traffic", "export", "--database", "farthing.db", "--out", "t.jsonl")
    said = "1 request (100%) outside the task of support: another temperature than in its section"
    assert said in refused(*export, "--policy", "support")
    assert said in farthing(*export).err
    line = refused(*export, "--policy", "suport")
    assert "unknown policy 'suport'; did you mean 'support'?" in line
    shown = farthing("traffic", "show", "--database", "farthing.db").out
    assert said in " ".join(shown.split())


def test_what_failed_is_listed_and_found(farthing: Farthing, refused: Refused) -> None:
    tries = ({"model": "large", "cost_usd": 0.002, "latency_s": 1.5, "error": "malformed"},)
    late = FailedRequest(
        "a1", NOW, "0a1b2c3d", "large", 502, "upstream_malformed", "nobody", tries, 2_000_000, 1.5
    )
    poor = replace(late, id="b2", status=402, code="budget_exceeded", tries=(), cost_nano=0)

    async def go() -> None:
        await migrate("farthing.db")
        traffic = await open_traffic("farthing.db", None, keep_prompts=True)
        traffic.failed(late)
        traffic.failed(poor)
        await traffic.aclose()

    asyncio.run(go())
    failures = ("traffic", "failures", "--database", "farthing.db")
    shown = " ".join(farthing(*failures).out.split())
    for said in ("a1", "b2", "502", "(malformed)", "$0.002"):
        assert said in shown
    (one,) = json.loads(farthing(*failures, "--id", "a1", "--json").out)
    assert (one["status"], one["cost_nano"], one["tries"]) == (502, 2_000_000, [dict(tries[0])])
    assert [r["id"] for r in json.loads(farthing(*failures, "--status", "402", "--json").out)] == [
        "b2"
    ]
    assert "no such request failed" in farthing(*failures, "--since", "2099-01-01").err
    assert "there is no such database" in refused("traffic", "failures", "--database", "no.db")


@pytest.mark.slow
def test_what_was_not_tried_proves_nothing(farthing: Farthing, tmp_path: Path) -> None:
    """A model that agrees half the time, and was tried on a tenth: the rest is no agreement."""
    where = str(tmp_path / "share.db")
    rng = np.random.default_rng(0)

    async def go() -> None:
        await migrate(where)
        traffic = await open_traffic(where, None, keep_prompts=True)
        for i in range(2_000):
            calls = [call("large", str(i % 3), cost_usd=0.01)]
            if i % 10 == 0:
                said = str(i % 3) if rng.random() < 0.5 else "9"
                calls.append(call("small", said, cost_usd=0.0001))
            at = NOW + timedelta(seconds=i)
            traffic.put(passed(f"q{i}", at=at, question=f"What is {i} modulo 3?", calls=calls))
        await traffic.aclose()

    asyncio.run(go())
    farthing("traffic", "export", "--database", where, "--out", "traces.jsonl")
    said = ("--promise", "agreement", "--reference", "large", "--epsilon", "0.01", "--json")
    done = farthing("recommend", "--traces", "traces.jsonl", *said)
    assert done.code == 1, done.err
    assert sum(json.loads(done.out)["questions"].values()) == 200


def test_the_traffic_is_shown(farthing: Farthing, refused: Refused, day: str) -> None:
    shown = farthing("traffic", "show", "--database", day)
    assert re.search(r"large +400 +\$4 +\$0.039 +\$0\n", shown.out)
    assert "400 requests in 400 conversations since 2026-11-22 12:00 UTC" in shown.out
    (line,) = json.loads(farthing("traffic", "show", "--database", day, "--json").out)["lines"]
    assert line["requests"] == 400
    narrow = max(map(len, shown.out.splitlines()))
    assert narrow <= 80
    out = ("--out", "traces.jsonl")
    tomorrow = ("--since", "2026-11-23")
    assert "no question passed" in refused("traffic", "export", "--database", day, *out, *tomorrow)
    assert "is no date" in refused("traffic", "export", "--database", day, *out, "--since", "x")


def test_traffic_without_texts_teaches_nothing(farthing: Farthing, refused: Refused) -> None:
    async def go() -> None:
        await migrate("farthing.db")
        traffic = await open_traffic("farthing.db", None, keep_prompts=False)
        traffic.put(passed("a"))
        await traffic.aclose()

    asyncio.run(go())
    line = refused("traffic", "export", "--database", "farthing.db", "--out", "t.jsonl")
    assert "keep the prompts" in line

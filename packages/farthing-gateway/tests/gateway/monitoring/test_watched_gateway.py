"""A gateway that runs: audits, feedback, alarms, and what it says of them."""

import asyncio
import json
import re
import shutil
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import Reply, Running, gateway
from policy_running import SYSTEM, config, letter, made_bundle, unproved_bundle
from serving import serving, total, until

from farthing.cli.main import _run as farthing
from farthing.traces.jsonl import read_traces
from farthing_gateway import app_state
from farthing_gateway.config import ServeConfig, read_config
from farthing_gateway.monitoring.bundle_path import place_of
from farthing_gateway.monitoring.evidence import audited_traces
from farthing_gateway.storage.database import Step, microseconds, open_database
from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.migrations import migrate

RECORD = "[record]\nshare = 0.0\nusd_per_day = 1.0\n"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of an agreement."""
    folder = tmp_path_factory.mktemp("bundle")
    made_bundle(folder)
    return folder / "bundle"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_state, "WATCH_S", 0.05)
    monkeypatch.setattr(app_state, "AUDIT_S", 0.05)


def drawing(text: str, audit: float, explore: float = 0.0) -> str:
    """Return a configuration with these shares."""
    shares = f"audit = {audit}\nexplore = {explore}\n"
    return text.replace("[policies.letters]\n", f"[policies.letters]\n{shares}") + RECORD


def post(running: Running, body: Any, key: str = "") -> Reply:
    """Send feedback."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    return running.send(urllib.request.Request(running.url + "/v1/feedback", data, headers))


def watched(running: Running, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Return what is watched once something is so."""
    found: dict[str, Any] = {}

    def so() -> bool:
        found.update(running.get("/v1/watch").json)
        return true(found)

    until(so)
    return found


def test_audits_are_asked_graded_paid_and_shown(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, drawing(config(stub, bundle), 1.0)) as running:
        headers = {"X-Farthing-Group": "vip"}
        said = [
            running.chat("farthing/letters", SYSTEM, f"number {k}", headers=headers if k else None)
            for k in range(6)
        ]
        mark = said[0].json["farthing"]["certificate"]
        found = watched(running, lambda one: one["kept"] and one["kept"][0]["graded"] == 6)
        whole, group = found["kept"]
        assert (whole["policy"], whole["mode"], whole["certificate"]) == (
            "letters",
            "default",
            mark,
        )
        assert (whole["kind"], whole["promised"], whole["share"]) == ("agreement", 0.95, 1.0)
        assert (whole["replies"], whole["drawn"], whole["failed"]) == (6, 6, 0)
        assert (group["group"], group["replies"], group["graded"]) == ("vip", 5, 5)
        assert whole["low"] > 0
        assert whole["says"].startswith("100 % of 6 graded audits kept it; of all replies ")
        assert "% to 100 % at confidence 0.95; 95 % was promised." in whole["says"]
        (deployment,) = found["deployments"]
        assert (deployment["certificate"], deployment["how"]) == (mark, "loaded")
        assert found["alarms"] == []
        assert [one["model"] for one in stub.requests].count("large-2026") == 6
        figures = running.get("/metrics").body.decode()
        assert f'farthing_promise_kept_high{{certificate="{mark}"' in figures
        assert 'farthing_alarms_open{policy="letters"} 0.0' in figures
    database = str(tmp_path / "gateway.db")
    paid = total(database, "policy:audit").settled
    assert (paid.calls, paid.nano) == (6, whole["audits_nano"])
    assert total(database, "policy:letters").settled.calls == 6
    out = tmp_path / "day.jsonl"
    assert farthing(["traffic", "export", "--database", database, "--out", str(out)]) == 0
    assert all(len(one.calls) == 2 and not one.truncated for one in read_traces(out))


@pytest.mark.slow
def test_rows_say_what_decided_and_what_chance_drew(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, drawing(config(stub, bundle), 0.5)) as running:
        for k in range(40):
            group = {"group": "g"} if k % 2 else {}
            running.chat("farthing/letters", SYSTEM, f"number {k}", farthing=group)
        running.chat("large", "Another prompt.", "number 8")
        watched(running, lambda one: one["kept"] and one["kept"][0]["replies"] == 40)
        mark = running.get("/ready").json["policies"]["letters"]["default"]
    rows = reading(
        tmp_path / "gateway.db",
        'SELECT certificate, mode, answered_by, "group", audit, audited FROM traffic_requests '
        "ORDER BY at_us",
    )
    assert rows[-1] == (None, None, "large", None, None, 0)
    assert {row[:3] for row in rows[:-1]} == {(mark, "default", "small")}
    assert [row[3] for row in rows[:-1]] == [None, "g"] * 20
    assert {row[4] for row in rows[:-1]} == {0.5}
    drawn = sum(row[5] for row in rows[:-1])
    assert 8 <= drawn <= 32
    audits = reading(tmp_path / "gateway.db", "SELECT purpose, probability FROM audits")
    assert audits == [("audit", 0.5)] * drawn


def reading(database: Path, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""

    async def go() -> list[tuple[Any, ...]]:
        opened = await open_database(str(database))
        try:
            return await opened.read(sql)
        finally:
            await opened.aclose()

    return asyncio.run(go())


def test_without_audits_nothing_moves_and_it_is_said(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, drawing(config(stub, bundle), 0.0)) as running:
        said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
        graded = post(running, {"trace_id": said["trace_id"], "grade": True})
        assert graded.json["audit"] is False
        (kept,) = watched(running, lambda one: one["kept"] and one["kept"][0]["volunteered"])[
            "kept"
        ]
        assert (kept["drawn"], kept["graded"], kept["low"]) == (0, 0, None)
        assert "neither the interval nor the threshold is updated" in kept["says"]
        assert len(stub.requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["agreement", "parity"])
def test_what_is_explored_is_complete_and_no_audit(tmp_path: Path, promise: str) -> None:
    made_bundle(tmp_path, promise)
    with Endpoint(letter) as stub:
        text = drawing(config(stub, tmp_path / "bundle"), 0.0, 1.0)
        with gateway(tmp_path, text) as running:
            said = [running.chat("farthing/letters", SYSTEM, f"number {k}") for k in range(3)]
            assert {one.json["farthing"]["promise"] for one in said} == {promise}
            watched(running, lambda one: one["kept"] and one["kept"][0]["explored_nano"] > 0)
            until(lambda: len(stub.requests) == 6)
            for one, gold in zip(said, "BBB", strict=True):
                sent = {"trace_id": one.json["farthing"]["trace_id"], "gold": gold}
                assert post(running, sent).json["audit"] is False
            found = watched(running, lambda one: one["kept"][0]["volunteered"] == 3)
    kept = found["kept"][0]
    assert (kept["explored"], kept["drawn"], kept["graded"]) == (3, 0, 0)
    assert kept["share"] is None
    assert found["ungraded"] == []
    rows = reading(tmp_path / "gateway.db", "SELECT decided FROM traffic_requests")
    promised = {json.loads(one)["promised"] for (one,) in rows}
    # At most so far below the reference: a difference in [-1, 1], as a share.
    assert promised == ({0.95} if promise == "agreement" else {(1 - 0.02) / 2})
    config_file = read_config(tmp_path / "serve.toml")
    assert drawn(config_file, datetime.fromtimestamp(0, UTC)) == 0


def drawn(config: ServeConfig, since: datetime) -> int:
    """Return how many audits would recalibrate the policy."""

    async def go() -> int:
        opened = await open_database(config.serve.database)
        try:
            return (
                await audited_traces(opened, place_of(config, "letters"), since, gold=False)
            ).drawn
        finally:
            await opened.aclose()

    return asyncio.run(go())


def test_an_alarm_ends_what_replies_promise_until_somebody_sees_to_it(
    tmp_path: Path, bundle: Path
) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, drawing(config(stub, bundle), 1.0)) as running:

        def ask(**wishes: Any) -> dict[str, Any]:
            said = running.chat("farthing/letters", SYSTEM, "number 7", farthing=wishes).json
            found: dict[str, Any] = said["farthing"]
            return found

        mark = ask()["certificate"]
        ring(tmp_path / "gateway.db", mark)
        until(lambda: ask()["promise"] == "none")
        ended = ask()
        assert ended["certificate"] is None
        assert re.fullmatch(r"Nothing is promised: since [^.]*an alarm says [^.]*\.", ended["says"])
        assert ended["answered_by"] == "small"
        ready = running.get("/ready").json
        assert ready["policies"] == {"letters": {"default": None}}  # as replies have it
        (note,) = ready["notes"]
        assert "the bundle of policy letters, mode default, holds no more" in note
        assert "an alarm says" in note
        modes = running.get("/v1/models/farthing/letters").json["farthing"]["modes"]
        assert modes == {"default": ended["says"]}
        proved = ask(reliability=0.9)
        assert (proved["promise"], proved["answered_by"]) == ("none", "large")
        assert 'farthing_alarms_open{policy="letters"} 1.0' in running.get("/metrics").body.decode()
        drawn = watched(running, lambda one: one["kept"] and one["kept"][0]["drawn"] > 2)["kept"][0]
        assert drawn["certificate"] == mark  # audits go on
        close(tmp_path / "gateway.db")
        until(lambda: ask()["promise"] == "agreement")
        ready = running.get("/ready").json
        assert (ready["policies"], ready["notes"]) == ({"letters": {"default": mark}}, [])


@pytest.mark.slow
def test_the_log_says_that_a_bundle_of_which_nothing_is_proved_does_not_decide(
    tmp_path: Path, bundle: Path
) -> None:
    place, proved, unproved = (tmp_path / name for name in ("bundle", "proved", "unproved"))
    unproved.mkdir()
    unproved_bundle(unproved)
    shutil.copytree(bundle, place)
    with (
        Endpoint(letter) as stub,
        gateway(tmp_path, drawing(config(stub, place), 0.0), watch=True) as running,
    ):

        def log(number: int) -> list[dict[str, Any]]:
            found = watched(running, lambda one: len(one["deployments"]) == number)
            return list(found["deployments"])

        (first,) = log(1)
        running.chat("farthing/letters", SYSTEM, "number 7")
        place.rename(proved)
        shutil.copytree(unproved / "bundle", place)
        last, _ = log(2)
        assert (first["certificate"] is None, last["certificate"]) == (False, None)
        assert "nothing was proved" in last["says"]
        place.rename(tmp_path / "gone")
        shutil.copytree(proved, place)
        assert log(3)[0]["certificate"] == first["certificate"]


def test_an_alarm_that_only_says_ends_no_promise(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub:
        text = drawing(config(stub, bundle), 0.0) + '[watch]\non_alarm = "say"\n'
        with gateway(tmp_path, text) as running:
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            ring(tmp_path / "gateway.db", said["certificate"])
            watched(running, lambda one: len(one["alarms"]) == 1)
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            assert said["promise"] == "agreement"


def ring(database: Path, certificate: str) -> None:
    """Raise an alarm."""
    row = ("a1", "letters", "default", certificate, "promise", microseconds(datetime.now(UTC)))
    sql = "INSERT INTO alarms VALUES ($1, $2, $3, $4, $5, $6, 'It is not kept.', 99.0, NULL, NULL)"
    asyncio.run(write(database, Step(sql, [row])))


def close(database: Path) -> None:
    """Close it."""
    asyncio.run(write(database, Step("UPDATE alarms SET closed_at_us = 1, closed_by = 'ann'")))


async def write(database: Path, step: Step) -> None:
    opened = await open_database(str(database))
    await opened.write(step)
    await opened.aclose()


async def keys(folder: Path) -> list[str]:
    """Make keys of two clients and of an administrator."""
    await migrate(str(folder / "gateway.db"))
    opened = await open_keys(str(folder / "gateway.db"))
    try:
        made = [await opened.make(name) for name in ("one", "two")]
        made.append(await opened.make("root", scopes=("admin",)))
        made.append(await opened.make("eyes", scopes=("read",)))
        return [secret for _, secret in made]
    finally:
        await opened.aclose()


def test_who_may_grade_what(tmp_path: Path, bundle: Path) -> None:
    one, two, root, eyes = asyncio.run(keys(tmp_path))
    with Endpoint(letter) as stub:
        text = drawing(config(stub, bundle, keys=True), 0.0)
        with gateway(tmp_path, text) as running:
            headers = {"Authorization": f"Bearer {one}"}
            said = running.chat("farthing/letters", SYSTEM, "number 7", headers=headers).json
            body = {"trace_id": said["farthing"]["trace_id"], "gold": "B"}
            graded = post(running, body, one)  # at once, before it is written
            assert (graded.status, graded.json["grade"]) == (200, 1.0)
            assert post(running, body | {"gold": "A"}, root).json["grade"] == 0.0
            assert post(running, body, two).status == 404
            assert post(running, body, eyes).status == 403
            assert post(running, body, "fk-none").status == 401
            unknown = post(running, body | {"trace_id": "0" * 32}, one)
            assert (unknown.status, unknown.json["error"]["code"]) == (404, "trace_not_found")
            wrong = post(running, {"trace_id": "a"}, one)
            assert (wrong.status, wrong.json["error"]["type"]) == (400, "invalid_request_error")
            assert running.get("/v1/watch", Authorization=f"Bearer {eyes}").status == 200
            assert running.get("/v1/watch", Authorization=f"Bearer {one}").status == 403
    rows = reading(tmp_path / "gateway.db", "SELECT grade, revision FROM feedback")
    assert rows == [(0.0, 2)]


def test_without_recording_there_is_nothing_to_grade(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        assert post(running, {"trace_id": "a", "grade": 1}).json["error"]["code"] == "not_recorded"
        assert running.get("/v1/watch").status == 404


@pytest.mark.slow
def test_workers_that_are_killed_lose_no_audit(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter, latency_s=0.3) as stub:
        text = drawing(config(stub, bundle, workers=2), 1.0)
        with serving(tmp_path, text) as running:
            for k in range(40):
                assert running.chat("farthing/letters", SYSTEM, f"number {k}").status == 200
                if k % 10 == 9:  # what waits to be written dies with a worker; an audit must not
                    until(partial(all_drawn, tmp_path, k + 1), 30)
                    running.kill(running.workers[0])
                    until(lambda: len(running.workers) == 2, 30)
            until(lambda: graded(running) == 40, 200)
            watched(running, lambda one: one["kept"][0]["replies"] == 40)


def all_drawn(folder: Path, number: int) -> bool:
    """Return whether so many audits are drawn."""
    return reading(folder / "gateway.db", "SELECT count(*) FROM audits") == [(number,)]


def graded(running: Running) -> int:
    """Return how many audits have a grade."""
    try:
        kept = running.get("/v1/watch").json["kept"]
    except OSError:
        return 0
    return int(kept[0]["graded"]) if kept else 0

"""`farthing watch`: what is watched, from the command line."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from made_traffic import NOW
from watched_traffic import later, reply

from farthing_gateway.monitoring.base import Deployed
from farthing_gateway.monitoring.counter import count
from farthing_gateway.monitoring.deployments import note_deployment
from farthing_gateway.monitoring.events import AuditGraded, Under, event_row, inserted
from farthing_gateway.monitoring.status import open_watch
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.migrations import migrate

Farthing = Callable[..., Any]
Refused = Callable[..., str]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A gateway whose promise was broken."""
    monkeypatch.chdir(tmp_path)
    Path("serve.toml").write_text('[serve]\ndatabase = "farthing.db"\n')

    async def go() -> None:
        await migrate("farthing.db")
        traffic = await open_traffic("farthing.db", None, keep_prompts=True)
        for k in range(1_500):
            traffic.put(reply(f"r{k}", audited=k < 90, group="g" if k % 3 else None))
        await traffic.aclose()
        await migrate("farthing.db")
        watch = await open_watch("farthing.db")
        await note_deployment(
            watch.database, Deployed("sums", "default", NOW, "c", "says", "loaded", None)
        )
        rows = [
            event_row(
                f"r{k}",
                Under("sums", "default", "c"),
                AuditGraded(value=float(k % 2), probability=0.5),
                later(1),
            )
            for k in range(80)
        ]
        await watch.database.write(*(inserted(row, "") for row in rows))
        await count(watch.database, 0.05)
        await watch.aclose()

    asyncio.run(go())
    return "serve.toml"


@pytest.mark.slow
def test_what_is_watched_is_shown_and_an_alarm_closed(
    farthing: Farthing, refused: Refused, config: str
) -> None:
    found = farthing("watch", config)
    text = " ".join(found.out.split())
    assert found.code == 0
    assert "sums agreement c 1,500 90 80 0.500" in text
    assert "less than the 90 % that was promised" in text
    assert "since alarm 0 ?" in text
    assert "Since the alarm was raised (" in text
    assert "1 open alarm, 0 closed" in text
    assert max(map(len, found.out.splitlines())) <= 100
    document = json.loads(farthing("watch", config, "--json").out)
    whole, group = document["kept"]
    assert (whole["graded"], group["group"], group["replies"]) == (80, "g", 1_000)
    (alarm,) = document["alarms"]
    assert alarm["closed_at"] is None
    assert document["deployments"][0]["certificate"] == "c"
    closed = farthing("watch", config, "--close", alarm["id"])
    assert (closed.code, closed.out) == (0, "")
    assert "0 open alarms, 1 closed" in farthing("watch", config).out
    again_graded()
    text = " ".join(farthing("watch", config).out.split())
    assert "since closing 1,200 0.950 (0.9" in text
    assert "95 % of 1,200 graded audits kept it: 9" in text
    assert "there is no open alarm" in refused("watch", config, "--close", alarm["id"])


def again_graded() -> None:
    """Grade more audits, of which one in twenty breaks the promise."""

    async def go() -> None:
        await migrate("farthing.db")
        watch = await open_watch("farthing.db")
        under, now = Under("sums", "default", "c"), datetime.now(UTC)
        grades = [AuditGraded(value=float(k % 20 > 0), probability=0.5) for k in range(1_200)]
        rows = [event_row(f"s{k}", under, one, now) for k, one in enumerate(grades)]
        await watch.database.write(*(inserted(row, "") for row in rows))
        await count(watch.database, 0.05)
        await watch.aclose()

    asyncio.run(go())


def test_without_traffic_there_is_nothing_to_watch(refused: Refused, tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('[serve]\ndatabase = "absent.db"\n')
    assert "there is no such database" in refused("watch", str(file))

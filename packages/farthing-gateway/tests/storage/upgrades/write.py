"""Write what upgrades are tested from: the databases of a gateway of this version, as SQL.

    python packages/farthing-gateway/tests/storage/upgrades/write.py VERSION

An SQLite file and a schema of the server in FARTHING_TEST_POSTGRES become VERSION.sqlite.sql and
VERSION.postgres.sql beside this file. `unversioned` was written at commit 901be4c0, before tables
had versions. What is in them is told by packages/farthing-gateway/tests/gateway/test_upgrade.py.
"""

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from contextlib import closing
from datetime import timedelta
from pathlib import Path

HERE = Path(__file__).parent
ROOT = Path.cwd()
sys.path[:0] = [
    str(ROOT / folder)
    for folder in ("tests/gateway", "tests/gateway/admin", "tests/models", "tests/runtime")
]

from chat_server import Endpoint  # noqa: E402
from gateway_running import Running, gateway  # noqa: E402
from page_running import Browser  # noqa: E402
from policy_running import SYSTEM, config, letter, made_bundle  # noqa: E402
from serving import until  # noqa: E402

from farthing_gateway import app_state  # noqa: E402
from farthing_gateway.storage.keys import KeyLimit, open_keys  # noqa: E402
from farthing_gateway.storage.ledger.base import Amount  # noqa: E402
from farthing_gateway.storage.ledger.ledger import open_ledger  # noqa: E402
from farthing_gateway.storage.migrations import migrate  # noqa: E402

RECORD = """
[record]
share = 0.0
usd_per_day = 1.0
[[budgets]]
of = "all"
usd = 20.0
per = "day"
"""
SCHEMA = "farthing_upgraded"


def main(version: str) -> None:
    """Write both."""
    app_state.WATCH_S = app_state.AUDIT_S = 0.05
    server = os.environ["FARTHING_TEST_POSTGRES"]
    secrets = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        made_bundle(folder)
        secrets["sqlite"] = written(folder, str(folder / "gateway.db"))
        with closing(sqlite3.connect(folder / "gateway.db")) as connection:
            text = "\n".join(connection.iterdump()) + "\n"
        (HERE / f"{version}.sqlite.sql").write_text(text)
        sql(server, f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE", f"CREATE SCHEMA {SCHEMA}")
        url = f"{server}{'&' if '?' in server else '?'}search_path={SCHEMA}"
        secrets["postgres"] = written(folder, url)
        flags = ["--inserts", "--no-owner", "--no-acl", "--schema", SCHEMA]
        text = subprocess.check_output(["pg_dump", *flags, server], text=True)
        (HERE / f"{version}.postgres.sql").write_text(_unqualified(text))
        sql(server, f"DROP SCHEMA {SCHEMA} CASCADE")
    (HERE / f"{version}.keys.json").write_text(json.dumps(secrets, indent=4) + "\n")


def sql(url: str, *statements: str) -> None:
    """Run statements."""
    subprocess.run(["psql", "-q", url, *(f"-c{one}" for one in statements)], check=True)


def _unqualified(dump: str) -> str:
    """Return a dump that can be read into any schema, without what psql alone knows."""
    kept = [
        line
        for line in dump.replace(f"{SCHEMA}.", "").splitlines()
        if not re.match(r"--|\\|$|SET |SELECT pg_catalog.set_config|CREATE SCHEMA", line)
    ]
    # Functions come before the tables that they name.
    return "\n".join(["SET check_function_bodies = false;", *kept]) + "\n"


def written(folder: Path, where: str) -> str:
    """Have a gateway write a database; return the secret of its key."""
    with Endpoint(letter) as stub:
        text = config(stub, folder / "bundle", database=where, keys=True)
        text = text.replace("[policies.letters]\n", "[policies.letters]\naudit = 1.0\n") + RECORD
        secret = asyncio.run(_key(where))
        with gateway(folder, text, record=True) as running:
            _pass(running, secret)
    asyncio.run(_leave_open(where))
    return secret


async def _key(where: str) -> str:
    await migrate(where)
    keys = await open_keys(where)
    try:
        limits = [KeyLimit("usd", "day", 5_000_000_000)]
        _, secret = await keys.make("web", "site", ["call", "admin"], limits)
        other, _ = await keys.make("gone", None, ["call"])
        await keys.revoke(other.id)
    finally:
        await keys.aclose()
    return secret


def _pass(running: Running, secret: str) -> None:
    opens = {"Authorization": f"Bearer {secret}"}
    for k in range(4):
        headers = opens | ({"X-Farthing-Group": "vip"} if k % 2 else {})
        said = running.chat("farthing/letters", SYSTEM, f"number {k}", headers=headers)
        assert said.status == 200
    once = opens | {"Idempotency-Key": "once"}
    plain = running.chat("large", "Another prompt.", "number 8", headers=once)
    assert running.chat("none", "number 9", headers=opens).status == 404
    body = {"trace_id": plain.headers["X-Farthing-Trace"], "grade": 1.0, "comment": "good"}
    asked = urllib.request.Request(
        running.url + "/v1/feedback",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", **opens},
    )
    assert running.send(asked).status == 200
    assert Browser(running).login(secret).status == 303

    def graded() -> bool:
        kept = running.get("/v1/watch", **opens).json["kept"]
        return bool(kept) and kept[0]["graded"] == 4

    until(graded)


async def _leave_open(where: str) -> None:
    """Leave reservations of a worker that lives, and of one that died, before and amid a call."""
    ledger = await open_ledger(where)
    long = timedelta(days=36_500).total_seconds()
    accounts = ["all", "key:web", "model:large"]
    await ledger.reserve(accounts, Amount(1_000, 10, 1), [], lease_s=long, note="large")
    await ledger.reserve(accounts, Amount(2_000, 20, 1), [], lease_s=1e-3, note="large")
    await ledger.reserve(accounts, Amount(4_000, 40, 1), [], lease_s=1e-3, sent=True, note="large")
    await ledger.aclose()


if __name__ == "__main__":
    main(*sys.argv[1:])

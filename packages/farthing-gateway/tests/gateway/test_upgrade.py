"""A gateway really runs on a database that one of an older version left amid its work."""

import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from database_facts import execute, facts, written
from gateway_running import models, serve_section
from serving import marked, recorded_in, serving, total, until

from farthing.cli.main import _run as farthing
from farthing.money import nano_from_usd
from farthing_gateway.storage.ledger.base import Amount

VERSIONS = pytest.mark.parametrize("version", ["unversioned", "0001", "0002"])
RECORD = "[record]\nshare = 0.0\ndays = 36_500\n"
LEFT, DIED, ASKED = 1_000, 2_000, 4_000
"""Nano-dollars set aside: by who lives, by who died before its call, and amid it."""


@pytest.mark.slow
@VERSIONS
def test_a_gateway_runs_on_what_one_of_before_left(bare: str, version: str, tmp_path: Path) -> None:
    opens = {"Authorization": f"Bearer {written(bare, version)}"}
    with Endpoint() as stub:
        text = serve_section(database=bare, keys=True, workers=2) + models(stub.url) + RECORD
        with serving(tmp_path, text, "--record") as running:
            until(lambda: total(bare).held == Amount(LEFT, 10, 1))
            reply = running.chat("large", "number 8", headers=opens)
            assert reply.status == 200
            cost = nano_from_usd(str(reply.json["farthing"]["cost_usd"]))
            every, own = total(bare), total(bare, "key:web")
            assert (every.settled.nano, every.settled.calls) == (736_000 + ASKED + cost, 11)
            assert (own.settled.nano, own.settled.calls) == (176_000 + ASKED + cost, 7)
            assert total(bare, "policy:audit").settled == Amount(560_000, 40, 4)
            assert [one.amount.nano for one in marked(bare)] == [ASKED]
            whole, group = running.get("/v1/watch", **opens).json["kept"]
            assert (whole["replies"], whole["graded"], whole["share"]) == (4, 4, 1.0)
            assert (group["group"], group["replies"], group["graded"]) == ("vip", 2, 2)
            assert whole["volunteered"] == 0
            assert running.chat("large", "no key").status == 401
    requests = recorded_in(bare)
    assert [one.model for one in requests] == ["farthing/letters"] * 4 + ["large", "large"]
    assert all(len(one.trace.calls) == 2 for one in requests[:4])


@VERSIONS
def test_figures_are_as_before(
    bare: str, version: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> Any:
        assert farthing([*arguments, "--database", bare, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    written(bare, version)
    assert farthing(["gateway", "migrate", "--database", bare]) == 0
    capsys.readouterr()
    keys = {one["name"]: one for one in said("keys", "list")}
    assert keys["gone"]["revoked_at"] is not None
    assert keys["web"]["limits"] == [{"unit": "usd", "period": "day", "most": 5_000_000_000}]
    traffic = said("traffic", "show")
    assert traffic["conversations"] == 5
    assert {one["model"]: one["requests"] for one in traffic["lines"]} == {
        "farthing/letters": 4,
        "large": 1,
    }
    (failure,) = said("traffic", "failures")
    assert (failure["status"], failure["code"]) == (404, "model_not_found")


@pytest.mark.parametrize("command", ["serve", "gateway migrate --config", "keys list --config"])
def test_a_newer_database_is_refused_in_a_line(
    where: str,
    tmp_path: Path,
    command: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    execute(where, "UPDATE farthing_version SET version_num = '9999'")
    before = facts(where)
    file = tmp_path / "serve.toml"
    file.write_text(serve_section(database=where) + models("http://127.0.0.1:9/v1"))
    assert farthing([*command.split(), str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "was written by a newer Farthing (its tables are of version 9999;" in line
    assert facts(where) == before

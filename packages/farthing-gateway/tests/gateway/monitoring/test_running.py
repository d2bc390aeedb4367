"""A gateway goes on with the bundle that its own audits made, and with the one before again."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import Running, gateway
from policy_running import SYSTEM, config, letter, made_bundle

from farthing.bundle.folder import load
from farthing.cli.main import _run as farthing
from farthing_gateway.monitoring.deployments import certificate_mark

RECORD = "\n[record]\nshare = 0\nat_once = 50\n"
REQUESTS = 72
QUESTIONS = range(1_200, 1_200 + REQUESTS)
"""Those before are what the bundle was made of, and prove nothing again."""


def until(what: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def in_force(running: Running) -> str:
    """Return which certificate decides."""
    return str(running.get("/ready").json["policies"]["letters"]["default"])


def done(folder: Path) -> int:
    """Return how many audits every model answered."""
    with sqlite3.connect(folder / "gateway.db") as database:
        return int(database.execute("SELECT count(*) FROM audits WHERE value = 1").fetchone()[0])


@pytest.mark.slow
def test_a_running_gateway_takes_up_what_is_recalibrated_and_rolled_back(tmp_path: Path) -> None:
    made_bundle(tmp_path)
    place = tmp_path / "bundle"
    first = certificate_mark(load(place).certificate)
    command = (str(tmp_path / "serve.toml"), "--policy", "letters")
    with Endpoint(letter) as stub:
        text = config(stub, place).replace('task = "', 'audit = 1.0\ntask = "') + RECORD
        with gateway(tmp_path, text, watch=True) as running:
            for number in QUESTIONS:
                said = running.chat("farthing/letters", SYSTEM, f"number {number}").json
                assert said["farthing"]["certificate"] == first
            until(lambda: done(tmp_path) == REQUESTS)
            assert farthing(["recalibrate", *command]) == 0
            second = certificate_mark(load(place).certificate)
            assert second != first
            until(lambda: in_force(running) == second)
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            assert (said["promise"], said["certificate"]) == ("agreement", second)
            assert farthing(["rollback", *command]) == 0
            until(lambda: in_force(running) == first)
            said = running.chat("farthing/letters", SYSTEM, "number 8").json["farthing"]
            assert said["certificate"] == first
            deployed = "SELECT how, certificate FROM deployments ORDER BY number"
            with sqlite3.connect(tmp_path / "gateway.db") as database:
                log = database.execute(deployed).fetchall()
    assert log == [("loaded", first), ("recalibrated", second), ("rolled back", first)]


@pytest.mark.slow
def test_where_a_model_is_another_audits_go_on_and_make_a_certificate_that_holds(
    tmp_path: Path,
) -> None:
    made_bundle(tmp_path)
    place = tmp_path / "bundle"
    with Endpoint(letter) as stub:
        text = config(stub, place).replace('task = "', 'audit = 1.0\ntask = "') + RECORD
        with gateway(tmp_path, text.replace("small-2026", "small-2027"), watch=True) as running:
            for number in QUESTIONS:
                said = running.chat("farthing/letters", SYSTEM, f"number {number}").json["farthing"]
                assert (said["promise"], said["certificate"]) == ("none", None)
            until(lambda: done(tmp_path) == REQUESTS)
            assert (
                farthing(["recalibrate", str(tmp_path / "serve.toml"), "--policy", "letters"]) == 0
            )
            until(lambda: in_force(running) != "None")
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            assert said["promise"] == "agreement"

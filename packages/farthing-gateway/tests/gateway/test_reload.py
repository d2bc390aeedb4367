"""The configuration is read again while requests pass: none is lost, what is wrong is refused."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from serving import Process, serving, until

from farthing.errors import InputError
from farthing_gateway.cli.gateway_database import GatewayDatabase
from farthing_gateway.config import read_config
from farthing_gateway.metrics import _forget_dead
from farthing_gateway.reloading import Outcomes, ask_to_reload, found_at

WORKERS = pytest.mark.parametrize("workers", [1, 2])
BODY = {"model": "large", "messages": [{"role": "user", "content": "two words"}]}


def text(workers: int, url: str, *names: str, **fields: object) -> str:
    """Return a configuration of some models at a stub."""
    return serve_section(workers=workers, **fields) + models(url, *names)


def reloaded(running: Process, new: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Write a configuration and have it taken, as a user does."""
    (running.folder / "serve.toml").write_text(new)
    farthing = str(Path(sys.executable).parent / "farthing")
    return subprocess.run(
        [farthing, "gateway", "reload", *(options or ("--config", "serve.toml"))],
        cwd=running.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def statuses(running: Process, *names: str) -> list[int]:
    """Return how requests to models are answered."""
    return [running.chat(name, "two words").status for name in names]


@dataclass
class Clients:
    """Clients that ask again and again: with a connection each, with one for all, by streams."""

    port: int
    ends: threading.Event = field(default_factory=threading.Event)
    answered: int = 0
    lost: list[str] = field(default_factory=list)

    def ask(self, *, keeps: bool, stream: bool) -> None:
        """Ask until it is said to end; note each request that is not answered in full."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = json.dumps({**BODY, "stream": stream}).encode()
        headers = {"Content-Type": "application/json"}
        while not self.ends.is_set():
            try:
                connection.request("POST", "/v1/chat/completions", body, headers)
                reply = connection.getresponse()
                said = reply.read()
                done = said.endswith(b"data: [DONE]\n\n") if stream else b"choices" in said
                if reply.status == 200 and done:
                    self.answered += 1
                else:
                    self.lost.append(f"{reply.status} {said[-200:]!r}")
            except (OSError, http.client.HTTPException) as error:
                self.lost.append(repr(error))
                connection.close()
            if not keeps:
                connection.close()
        connection.close()


@contextmanager
def clients(port: int) -> Iterator[Clients]:
    """Have clients ask while the block runs."""
    asking = Clients(port)
    kinds = [(keeps, stream) for keeps in (False, True) for stream in (False, True)] * 2
    threads = [
        threading.Thread(target=asking.ask, kwargs={"keeps": keeps, "stream": stream})
        for keeps, stream in kinds
    ]
    for one in threads:
        one.start()
    try:
        yield asking
    finally:
        asking.ends.set()
        for one in threads:
            one.join(60)


@pytest.mark.slow
@WORKERS
def test_no_request_is_lost_in_several_reloads(tmp_path: Path, workers: int) -> None:
    with (
        Endpoint(latency_s=0.01, between_s=0.02) as stub,
        serving(tmp_path, text(workers, stub.url)) as running,
    ):
        before = set(running.workers)
        with clients(running.port) as asking:
            for at in range(3):
                asked = asking.answered
                names = ("large", "small") if at % 2 else ("large", "new")
                done = reloaded(running, text(workers, stub.url, *names).replace("[prices]", PRICE))
                assert done.returncode == 0, done.stderr
                assert f"is served by {workers} new worker(s)" in done.stderr
                until(lambda asked=asked: asking.answered >= asked + 30, 30)  # type: ignore[misc]
        assert asking.lost == []
        assert asking.answered > 100
        until(lambda: len(running.workers) == workers, 20)
        assert before.isdisjoint(running.workers)
        assert "Traceback" not in running.said()
    assert running.popen.returncode == 0, running.said()


PRICE = '[prices]\n"new-2026" = { input_per_million = 1, output_per_million = 2 }'


@pytest.mark.slow
@WORKERS
def test_what_is_added_is_served_and_what_is_removed_is_not(tmp_path: Path, workers: int) -> None:
    with Endpoint() as stub, serving(tmp_path, text(workers, stub.url)) as running:
        assert statuses(running, "large", "small", "new") == [200, 200, 404]
        new = text(workers + 1, stub.url, "large", "new").replace("[prices]", PRICE)
        assert reloaded(running, new, "--pid-file", "gateway.db.pid").returncode == 0
        assert statuses(running, "large", "small", "new") == [200, 404, 200]
        until(lambda: len(running.workers) == workers + 1)
        # One that dies is started again with what was taken, whatever the file says by now.
        (tmp_path / "serve.toml").write_text("[serve")
        for pid in running.workers:
            running.kill(pid)
        until(lambda: "started again" in running.said(), 20)
        until(lambda: len(running.workers) == workers + 1, 20)
        assert statuses(running, "large", "small", "new") == [200, 404, 200]
        counted = running.get("/metrics").body.decode()
        assert 'farthing_requests_total{model="small",status="200"} 1.0' in counted


WRONG = {
    "serve.toml: is not TOML": ("[serve]", "[serve"),
    "names 'huge', which is no model here": ('strongest = "large"', 'strongest = "huge"'),
    "nothing says what the model 'large-2026' costs": ('"large-2026" =', '"other" ='),
    "a running gateway keeps 127.0.0.1: end it": ("[serve]", '[serve]\nhost = "127.0.0.2"'),
    "no.such": ("[prices]", '[record]\nredact = "no.such:function"\n[prices]'),
    "could not be started": ("[prices]", '[record]\nredact = "hook:plain"\n[prices]'),
}
HOOK = """
import multiprocessing
if multiprocessing.current_process().name.startswith("Spawn"):  # not where it is tried
    raise SystemExit(3)
def plain(text):
    return text
"""


@pytest.mark.slow
def test_what_is_wrong_is_refused_and_what_was_read_goes_on(tmp_path: Path) -> None:
    (tmp_path / "hook.py").write_text(HOOK)
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    with Endpoint() as stub:
        good = text(2, stub.url)
        with serving(tmp_path, good, environment=path) as running:
            before = running.workers
            for why, change in WRONG.items():
                done = reloaded(running, good.replace(*change))
                assert (done.returncode, done.stdout) == (2, "")
                assert len(done.stderr.splitlines()) == 1
                assert why in done.stderr
                assert statuses(running, "large", "small") == [200, 200]
                until(lambda: running.workers == before)
            # The same by the signal alone, and then something right. What is no TOML names no
            # gateway that could be asked.
            running.popen.send_signal(signal.SIGHUP)
            said = tmp_path / "gateway.db.pid.reload"
            until(lambda: json.loads(said.read_bytes())["ended"] == len(WRONG), 20)
            assert reloaded(running, good).returncode == 0
            assert statuses(running, "large", "small") == [200, 200]


@pytest.mark.slow
def test_a_request_that_outlasts_the_drain_is_answered(tmp_path: Path) -> None:
    with (
        Endpoint(latency_s=15.0) as stub,
        serving(tmp_path, text(1, stub.url, drain_s=0.5)) as running,
    ):
        found: list[int] = []
        asked = threading.Thread(target=lambda: found.extend(statuses(running, "large")))
        asked.start()
        until(lambda: stub.under_way == 1)
        assert reloaded(running, text(1, stub.url, drain_s=0.5)).returncode == 0
        assert stub.under_way == 1
        asked.join(30)
        assert found == [200]
        # One that ends waits no longer than it always does, also for what retires.
        asked = threading.Thread(target=lambda: found.extend(statuses(running, "large")))
        asked.start()
        until(lambda: stub.under_way == 1)
        assert reloaded(running, text(1, stub.url, drain_s=0.5)).returncode == 0
        began = time.monotonic()
        running.end()
        assert running.popen.wait(60) == 0, running.said()
        assert time.monotonic() - began < 30
        asked.join(30)
        assert found == [200, 503]


@pytest.mark.slow
def test_a_second_gateway_on_a_database_is_told_that_it_is_not_found(tmp_path: Path) -> None:
    with Endpoint() as stub, serving(tmp_path, text(1, stub.url)) as running:
        other = tmp_path / "other"
        other.mkdir()
        second = text(1, stub.url, database=str(tmp_path / "gateway.db"))
        with serving(other, second) as beside:
            assert "gateway.db.pid: another gateway holds it" in beside.said()
        assert reloaded(running, text(1, stub.url)).returncode == 0
    assert not list(tmp_path.glob("gateway.db.pid*"))


def test_whoever_holds_no_pid_file_is_not_asked(tmp_path: Path) -> None:
    file = tmp_path / "farthing.pid"
    with pytest.raises(InputError, match="no gateway serves with this pid file"):
        ask_to_reload(file)
    file.write_text(f"{os.getpid()}\n")  # left behind; the number is somebody's by now
    with pytest.raises(InputError, match="no gateway serves with this pid file"):
        ask_to_reload(file)


def test_the_holder_of_a_pid_file_is_asked_whatever_is_written_in_it(tmp_path: Path) -> None:
    file = tmp_path / "farthing.pid"
    script = f"""
import signal, sys, time
from pathlib import Path
from farthing_gateway.reloading import found_at
with found_at(Path({str(file)!r})) as (outcomes, why):
    def heard(*_):
        outcomes.begin()
        sys.exit()
    signal.signal(signal.SIGHUP, heard)
    print(why, flush=True)
    time.sleep(30)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"None\n"
        file.write_text("1\n")
        with pytest.raises(InputError, match="no gateway serves"):  # it ended as it was asked
            ask_to_reload(file)
    assert not file.exists()


def test_why_a_gateway_cannot_be_found_is_said(tmp_path: Path) -> None:
    with found_at(tmp_path / "absent" / "farthing.pid") as (outcomes, why):
        assert outcomes == Outcomes(None)
        assert "no such file or directory" in str(why)
    (tmp_path / "link.pid").symlink_to(tmp_path / "elsewhere")
    with found_at(tmp_path / "link.pid") as (_, why):
        assert "link.pid: " in str(why)
    assert not (tmp_path / "elsewhere").exists()
    with found_at(tmp_path / "farthing.pid") as (_, why):
        assert why is None
        assert (tmp_path / "farthing.pid").read_text() == f"{os.getpid()}\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "link.pid"]


def test_what_is_true_of_living_workers_alone_is_forgotten_of_the_dead(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    kinds = ("gauge_livesum", "gauge_mostrecent", "counter", "histogram")
    for kind in kinds:
        for pid in (dead.pid, os.getpid()):
            (tmp_path / f"{kind}_{pid}.db").touch()
    _forget_dead(tmp_path)
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {f"{kind}_{os.getpid()}.db" for kind in kinds} | {
        f"{kind}_{dead.pid}.db" for kind in kinds[2:]
    }


def test_where_the_pid_file_is(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    there = tmp_path / "farthing.db"
    server = "postgresql://farthing@db/farthing"
    for given, found in {
        "database = 'farthing.db'": f"{there}.pid",
        f"database = '{there}'\npid_file = 'a.pid'": str(tmp_path / "a.pid"),
        f"database = '{server}'\npid_file = '/run/a.pid'": "/run/a.pid",
    }.items():
        file.write_text(f"[serve]\nstrongest = 'large'\n{given}\n{models('http://127.0.0.1:9/v1')}")
        assert str(GatewayDatabase(config=file).pid_file) == found
        assert str(read_config(file).pid_file) == found
    assert str(GatewayDatabase(database="farthing.db").pid_file) == "farthing.db.pid"
    with pytest.raises(InputError, match="found by the pid_file that"):
        _ = GatewayDatabase(database=server).pid_file
    with pytest.raises(InputError, match="give the gateway's database"):
        _ = GatewayDatabase().pid_file

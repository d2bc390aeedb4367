"""The gateway is asked to end: what is under way is finished, or charged and marked."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import Reply, gateway, models, serve_section
from serving import marked, refused, serving, total, until

from farthing.errors import ConfigError
from farthing_gateway.config import read_config
from farthing_gateway.recording.traffic import open_traffic

WORKERS = pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
RECORD = "\n[record]\nshare = 0.0\n"


class Asked:
    """A request in a thread of its own."""

    def __init__(self, ask: Callable[[], Reply]) -> None:
        self.reply: Reply | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(ask,), daemon=True)
        self._thread.start()

    def _run(self, ask: Callable[[], Reply]) -> None:
        try:
            self.reply = ask()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def done(self) -> Reply | None:
        """Return the reply; None where the connection broke."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.reply


@pytest.mark.slow
@WORKERS
def test_what_is_under_way_is_finished_and_new_connections_are_refused(
    tmp_path: Path, workers: int
) -> None:
    text = serve_section(workers=workers, drain_s=20.0)
    with Endpoint(latency_s=2.0, between_s=0.4) as stub:
        with serving(tmp_path, text + models(stub.url) + RECORD) as running:
            slow = [Asked(lambda: running.chat("large", "two words")) for _ in range(2)]
            streams = [Asked(lambda: running.chat("small", "a b c", stream=True)) for _ in range(2)]
            until(lambda: stub.under_way == 4)
            running.end()
            until(lambda: refused(running.port))
            assert stub.under_way, "refused while requests are under way"
            assert running.popen.wait(60) == 0, running.said()
        replies = [one.done() for one in (*slow, *streams)]
    assert [reply and reply.status for reply in replies] == [200] * 4
    assert all(reply is not None and reply.events[-1] == "[DONE]" for reply in replies[2:])
    database = str(tmp_path / "gateway.db")
    assert (total(database).settled.calls, total(database).held.calls) == (4, 0)
    assert not marked(database)
    assert recorded(database) == 4
    assert "Traceback" not in running.said()


def recorded(database: str) -> int:
    """Return how many requests were recorded."""

    async def read() -> int:
        traffic = await open_traffic(database, None, keep_prompts=True)
        try:
            return len([one async for one in traffic.read()])
        finally:
            await traffic.aclose()

    return asyncio.run(read())


@pytest.mark.slow
@WORKERS
def test_what_takes_longer_than_the_drain_is_cut_charged_and_marked(
    tmp_path: Path, workers: int
) -> None:
    text = serve_section(workers=workers, drain_s=1.0)
    with Endpoint(latency_s=30.0) as stub, serving(tmp_path, text + models(stub.url)) as running:
        slow = Asked(lambda: running.chat("large", "two words"))
        stream = Asked(lambda: running.chat("large", "two words", stream=True))
        until(lambda: stub.under_way == 2)
        running.end()
        began = time.monotonic()
        assert running.popen.wait(60) == 0, running.said()
        assert time.monotonic() - began < 15
        for reply in (slow.done(), stream.done()):
            assert reply is not None
            assert (reply.status, reply.json["error"]["code"]) == (503, "shutting_down")
            assert reply.headers["Retry-After"] == "1"
        assert "Traceback" not in running.said()
        until(lambda: stub.disconnects == 2)
    found = marked(str(tmp_path / "gateway.db"))
    assert len(found) == 2
    balance = total(str(tmp_path / "gateway.db"))
    assert balance.held.nano == 0
    assert balance.settled.nano == sum(one.amount.nano for one in found) > 0


@pytest.mark.slow
def test_a_stream_that_the_end_cuts_says_so(tmp_path: Path) -> None:
    text = serve_section(drain_s=1.0)
    with (
        Endpoint(lambda _: "word " * 200, between_s=0.1) as stub,
        serving(tmp_path, text + models(stub.url)) as running,
    ):
        stream = Asked(lambda: running.chat("large", "two words", stream=True))
        until(lambda: stub.under_way == 1)
        time.sleep(0.5)  # its first pieces are out
        running.end()
        assert running.popen.wait(60) == 0, running.said()
        reply = stream.done()
    assert reply is not None
    *_, error, done = reply.events
    assert (json.loads(error)["error"]["code"], done) == ("shutting_down", "[DONE]")
    assert len(reply.events) > 3
    assert "Traceback" not in running.said()
    assert total(str(tmp_path / "gateway.db")).held.calls == 0


@pytest.mark.slow
@WORKERS
def test_a_gateway_that_cannot_be_opened_ends_with_a_status(tmp_path: Path, workers: int) -> None:
    text = serve_section(workers=workers, database="none/gateway.db")
    (tmp_path / "serve.toml").write_text(text + models("http://127.0.0.1:9/v1"))
    command = [str(Path(sys.executable).parent / "farthing"), "serve", "serve.toml", "--port", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, timeout=100)
    assert done.returncode != 0


@pytest.mark.slow
def test_requests_under_way_leave_out_workers_that_were_killed(tmp_path: Path) -> None:
    with (
        Endpoint(latency_s=20) as stub,
        serving(tmp_path, serve_section(workers=2, drain_s=1.0) + models(stub.url)) as running,
    ):
        asked = [Asked(lambda: running.chat("large", "x")) for _ in range(4)]
        until(lambda: stub.under_way == 4)
        for pid in running.workers:
            running.kill(pid)
        assert [one.done() for one in asked] == [None] * 4
        until(lambda: _answers(running.get), 30)
        until(lambda: "farthing_requests_under_way 0.0" in running.get("/metrics").body.decode())


def _answers(get: Callable[[str], Reply]) -> bool:
    try:
        return get("/health").status == 200
    except OSError:
        return False


def test_a_lease_outlasts_the_deadline(tmp_path: Path) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(serve_section(lease_s=5.0, deadline_s=5.0) + models("http://127.0.0.1:9/v1"))
    with pytest.raises(ConfigError, match="lease_s must be more than deadline_s"):
        read_config(file)


def test_a_fallback_counts_what_the_model_before_it_cost(tmp_path: Path) -> None:
    with Endpoint(faults={"reset": 1.0}) as broken, Endpoint() as well:
        text = serve_section() + "[serve.fallbacks]\nlarge = ['small']\n" + models(broken.url)
        head, rest = text.split("[models.large]")
        text = head.replace(broken.url, well.url) + "[models.large]" + rest
        with gateway(tmp_path, text) as running:
            whole = running.chat("large", "two words").json["farthing"]
            said = running.chat("large", "two words", stream=True).body.split(b": farthing ")[1]
    streamed = json.loads(said.split(b"\n\n")[0])
    settled = total(str(tmp_path / "gateway.db")).settled.nano
    assert whole["cost_nano"] + streamed["cost_nano"] == settled
    assert len(marked(str(tmp_path / "gateway.db"))) == 2

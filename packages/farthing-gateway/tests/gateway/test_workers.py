"""Several workers: one that cannot be started is started again, and ends no other."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from serving import Process, refused, serving, until

from farthing_gateway.workers import Worker

HOOK = """
import multiprocessing, pathlib

starts = pathlib.Path(__file__).with_name("starts")
if multiprocessing.parent_process() is not None:  # a worker
    with starts.open("a") as file:
        file.write("x")
    if not FIRST <= len(starts.read_text()) <= LAST:
        raise ImportError("not yet")

def plain(text):
    return text
"""
"""A hook that only those starts of workers survive which are so many from the first."""


def text(folder: Path, stub: Endpoint, first: int, last: int) -> str:
    """Return a configuration of two workers, of whose starts only some can succeed."""
    hook = HOOK.replace("FIRST", str(first)).replace("LAST", str(last))
    (folder / "hook.py").write_text(hook)
    record = '\n[record]\nshare = 0.0\nredact = "hook:plain"\n'
    return serve_section(workers=2) + models(stub.url) + record


def path(folder: Path) -> dict[str, str]:
    """Return the environment in which the hook is found."""
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{before}" if before else str(folder)}


def starts(folder: Path) -> int:
    """Return how many workers were started."""
    return len((folder / "starts").read_text())


def answers(running: Process) -> bool:
    """Return whether a request is answered."""
    return running.chat("large", "two words").status == 200


@pytest.mark.slow
def test_a_worker_that_cannot_be_started_is_started_again(tmp_path: Path) -> None:
    with (
        Endpoint() as stub,
        serving(tmp_path, text(tmp_path, stub, 3, 99), environment=path(tmp_path)) as running,
    ):
        until(lambda: starts(tmp_path) == 4, 30)
        assert answers(running)
        assert "1 in a row: it is started again in 1 s" in running.said()
    assert running.popen.returncode == 0, running.said()


@pytest.mark.slow
def test_a_worker_that_cannot_be_started_for_long_leaves_the_others(tmp_path: Path) -> None:
    with (
        Endpoint() as stub,
        serving(tmp_path, text(tmp_path, stub, 1, 1), environment=path(tmp_path)) as running,
    ):
        until(lambda: "4 in a row: it is started again in 8 s" in running.said(), 60)
        assert starts(tmp_path) == 5
        assert answers(running)
    assert running.popen.returncode == 0, running.said()


@pytest.mark.slow
def test_where_no_worker_can_be_started_the_gateway_ends(tmp_path: Path) -> None:
    with (
        Endpoint() as stub,
        pytest.raises(AssertionError, match="no worker could be started"),
        serving(tmp_path, text(tmp_path, stub, 0, 0), environment=path(tmp_path)),
    ):
        pass


@pytest.mark.slow
def test_a_worker_that_ends_again_and_again_is_waited_for(tmp_path: Path) -> None:
    with Endpoint() as stub, serving(tmp_path, serve_section(workers=2) + models(stub.url)) as one:
        until(lambda: len(one.workers) == 2)
        one.kill(max(one.workers))
        until(lambda: "1 in a row: it is started again in 1 s" in one.said(), 20)
        assert answers(one)
        until(lambda: len(one.workers) == 2, 20)
        one.kill(max(one.workers))
        until(lambda: "2 in a row: it is started again in 2 s" in one.said(), 20)
        assert answers(one)
    assert one.popen.returncode == 0, one.said()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_signals_that_are_not_for_a_gateway_change_nothing(tmp_path: Path, workers: int) -> None:
    text = serve_section(workers=workers)
    with Endpoint() as stub, serving(tmp_path, text + models(stub.url)) as one:
        until(lambda: len(one.workers) == workers)
        before = one.workers
        for number in (signal.SIGTTIN, signal.SIGTTOU, signal.SIGHUP):
            # The parent reads its configuration again on SIGHUP: see test_reload.py.
            for pid in {*before, *([] if number == signal.SIGHUP else [one.popen.pid])}:
                os.kill(pid, number)
            time.sleep(1)  # the supervisor looks twice a second
            assert (one.workers, answers(one)) == (before, True)
    assert one.popen.returncode == 0, one.said()


@pytest.mark.slow
def test_workers_end_with_their_parent_and_finish_what_is_under_way(tmp_path: Path) -> None:
    text = serve_section(workers=3) + models("URL")
    with (
        Endpoint(latency_s=3.0) as stub,
        serving(tmp_path, text.replace("URL", stub.url)) as running,
        ThreadPoolExecutor() as threads,
    ):
        workers = running.workers
        assert len(workers) == 3
        asked = threads.submit(running.chat, "large", "two words")
        until(lambda: stub.under_way == 1)
        running.popen.kill()
        until(lambda: refused(running.port))
        assert asked.result(20).status == 200
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
        assert "Traceback" not in running.said()


def test_a_worker_that_ends_while_it_is_asked_is_not_waited_for() -> None:
    worker = Worker.__new__(Worker)
    worker.parent_conn, worker.child_conn = multiprocessing.Pipe()
    worker.process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    worker.process.start()
    try:
        asked = time.monotonic()
        assert not worker.is_alive(0.5), "it says nothing"
        threading.Timer(1.0, worker.process.kill).start()
        assert not worker.is_alive(30)
        assert time.monotonic() - asked < 10
    finally:
        worker.kill()
        worker.process.join()

"""Several workers: one that cannot be started is started again, and ends no other."""

import os
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from serving import Process, serving, until

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
        assert running.said().count("it is started again in 1 s") == 2
    assert running.popen.returncode == 0, running.said()


@pytest.mark.slow
def test_a_worker_that_can_never_be_started_leaves_the_others(tmp_path: Path) -> None:
    with (
        Endpoint() as stub,
        serving(tmp_path, text(tmp_path, stub, 1, 1), environment=path(tmp_path)) as running,
    ):
        until(lambda: "4 times in a row: it is left out" in running.said(), 60)
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

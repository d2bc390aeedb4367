"""`farthing serve` as users run it: in processes of its own, to be loaded, ended and killed."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway_running import Running

from farthing_gateway.recording.record import RequestRecord
from farthing_gateway.recording.traffic import open_traffic
from farthing_gateway.storage.ledger.base import AccountBalance, UnknownCall
from farthing_gateway.storage.ledger.ledger import open_ledger


@dataclass(frozen=True)
class Process(Running):
    """A gateway in processes of its own."""

    popen: subprocess.Popen[bytes]
    log: Path
    port: int

    @property
    def workers(self) -> list[int]:
        """The processes that answer."""
        children = _children(self.popen.pid)
        return [pid for pid in children if b"spawn_main" in _command(pid)] or [self.popen.pid]

    def kill(self, worker: int) -> None:
        """End a worker without a warning."""
        os.kill(worker, signal.SIGKILL)

    def end(self) -> None:
        """Ask it to end."""
        self.popen.send_signal(signal.SIGTERM)

    def said(self) -> str:
        """Return all that the processes printed."""
        return self.log.read_text(errors="replace")


@contextmanager
def serving(
    folder: Path, text: str, *options: str, environment: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """Run `farthing serve` while the block runs, from the moment when it is ready."""
    port = _free()
    (folder / "serve.toml").write_text(text)
    log = folder / "serve.log"
    program = [sys.executable, "-m", "farthing.cli.main"]
    command = [*_farthing(program), "serve", "serve.toml", "--port", str(port), *options]
    with log.open("ab") as output:
        popen = subprocess.Popen(
            command,
            cwd=folder,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
        )
    running = Process(f"http://127.0.0.1:{port}", folder, popen, log, port)
    try:
        until(lambda: _ready(running), 60)
        yield running
    finally:
        if popen.poll() is None:
            popen.terminate()
        popen.wait(60)


def _farthing(program: list[str]) -> list[str]:
    """Return the installed command, which lies beside the interpreter."""
    installed = Path(sys.executable).parent / "farthing"
    return [str(installed)] if installed.is_file() else program


def _ready(running: Process) -> bool:
    assert running.popen.poll() is None, running.said()
    try:
        return running.get("/health").status == 200
    except OSError:
        return False


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def refused(port: int) -> bool:
    """Return whether nobody takes connections at a port."""
    with socket.socket() as one:
        one.settimeout(2)
        return one.connect_ex(("127.0.0.1", port)) != 0


def memory_mib(pid: int) -> float:
    """Return the memory of a process and its children, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    return own / 1_024 + sum(map(memory_mib, _children(pid)))


def total(database: str, account: str = "all") -> AccountBalance:
    """Return where an account stands over all time."""

    async def read() -> AccountBalance:
        ledger = await open_ledger(database)
        try:
            return next(b for b in await ledger.balances([account]) if b.period == "total")
        finally:
            await ledger.aclose()

    return asyncio.run(read())


def marked(database: str) -> list[UnknownCall]:
    """Return the calls of unknown outcome."""

    async def read() -> list[UnknownCall]:
        ledger = await open_ledger(database)
        try:
            return await ledger.unknowns()
        finally:
            await ledger.aclose()

    return asyncio.run(read())


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _free() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def request(model: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return the body of a request."""
    return {"model": model, "messages": [{"role": "user", "content": content}], **fields}


def recorded(folder: Path) -> list[RequestRecord]:
    """Return what was recorded."""
    return recorded_in(str(folder / "gateway.db"))


def recorded_in(database: str) -> list[RequestRecord]:
    """Return what was recorded in a database."""

    async def read() -> list[RequestRecord]:
        traffic = await open_traffic(database, None, keep_prompts=True)
        try:
            return [one async for one in traffic.read()]
        finally:
            await traffic.aclose()

    return asyncio.run(read())

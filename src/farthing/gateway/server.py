"""Start the gateway: one process or several, on one address, ended in order."""

import asyncio
import math
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from farthing.errors import InputError, MissingExtraError
from farthing.gateway.config import ServeConfig, overridden, read_config
from farthing.gateway.config_warnings import of_keys
from farthing.gateway.repeated_lines import summed_lines
from farthing.models.chat_serving import bind, shown
from farthing.storage.migrations import migrate

if TYPE_CHECKING:
    from starlette.applications import Starlette

FILE, RECORD = "FARTHING_SERVE_CONFIG", "FARTHING_SERVE_RECORD"
WATCH, WORKERS = "FARTHING_SERVE_WATCH", "FARTHING_SERVE_WORKERS"
"""Environment variables that tell a worker what to serve, as one of how many."""
SILENT_S = 30
"""A worker that says nothing for so many seconds is started again; a busy machine starts slowly."""


Ready = Callable[[str, Sequence[str]], None]
"""Is told the address, and what to know of bundles and budgets, a line each."""


def serve(config: ServeConfig, *, record: bool, watch: bool, ready: Ready) -> None:
    """Serve until the process is asked to end; requests under way are finished first.

    Args:
        config: what is served; it was read and checked.
        record: whether traffic is recorded.
        watch: whether bundles are read again when they change.
        ready: told before the first request.

    The tables of its database are made or changed here, before any worker starts.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from farthing.gateway.admin.state import opened_pages  # noqa: PLC0415
        from farthing.gateway.app_state import open_gateway  # noqa: PLC0415
        from farthing.gateway.connections import ConnectionConfig  # noqa: PLC0415
        from farthing.gateway.workers import Workers, set_signals  # noqa: PLC0415
    except ModuleNotFoundError:
        raise MissingExtraError("serving", "serve") from None

    async def tried() -> list[str]:
        await migrate(config.serve.database)
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(open_gateway(config, watch=False))
            if config.has_page:
                await stack.enter_async_context(opened_pages(gateway))
            found = [note for one in gateway.chat.policies.values() for note in one.notes()]
            now = datetime.now(UTC)
            keys = None if gateway.keys is None else await gateway.keys.list()
            return found if keys is None else [*found, *of_keys(config, keys, now)]

    notes = asyncio.run(tried())  # what a worker could not open is said here, once and in a line
    section = config.serve
    listening = bind(section.host, section.port)
    os.environ[FILE] = str(Path(config.file).absolute())
    os.environ[RECORD], os.environ[WATCH] = str(int(record)), str(int(watch))
    os.environ[WORKERS] = str(section.workers)
    with _shared_metrics(section.workers), summed_lines():
        settings = ConnectionConfig(
            "farthing.gateway.server:worker",
            client_timeout_s=section.client_timeout_s,
            factory=True,
            workers=section.workers,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=math.ceil(section.drain_s),
            timeout_worker_healthcheck=SILENT_S,
            server_header=False,
            forwarded_allow_ips=list(config.page.proxies),
        )
        ready(shown(listening), notes)
        if section.workers == 1:
            set_signals()
            uvicorn.Server(settings).run(sockets=[listening])
            return
        supervisor = Workers(settings, sockets=[listening])
        waiting = threading.Thread(target=_refuse, args=(supervisor.should_exit, listening))
        waiting.start()
        try:
            supervisor.run()
        finally:
            supervisor.should_exit.set()
            waiting.join()
        if supervisor.none_left:
            raise InputError("no worker could be started; what they said stands above")


def _refuse(asked_to_end: threading.Event, listening: socket.socket) -> None:
    """Refuse new connections once the server is asked to end.

    The workers close the address, but while this process has it open, it takes connections that
    nobody answers.
    """
    asked_to_end.wait()
    listening.close()


def worker() -> "Starlette":
    """Return the application of one worker, as the environment says what to serve."""
    from farthing.gateway.app import application  # noqa: PLC0415 - an extra

    record, watch = os.environ[RECORD] == "1", os.environ[WATCH] == "1"
    read = read_config(Path(os.environ[FILE]), record=record)
    return application(overridden(read, workers=int(os.environ[WORKERS])), watch=watch)


@contextmanager
def _shared_metrics(workers: int) -> Iterator[None]:
    """Give several workers a folder in which their figures add up."""
    if workers == 1:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="farthing-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield

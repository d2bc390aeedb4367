"""Start the gateway: one process that answers or several, on one address, ended in order."""

import asyncio
import math
import os
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from farthing.errors import InputError
from farthing.models.chat_serving import bind, shown
from farthing_gateway.candidate import read_again, tried
from farthing_gateway.config import ConfigSource, ServeConfig
from farthing_gateway.log_lines import in_one_line
from farthing_gateway.reloading import found_at
from farthing_gateway.storage.migrations import migrate
from farthing_gateway.workers import Workers, ignore_signals

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from farthing_gateway.connections import ConnectionConfig

SILENT_S = 30
"""A worker that says nothing for so many seconds is started again; a busy machine starts slowly."""


Ready = Callable[[ServeConfig, str, Sequence[str]], None]
"""Is told what is served, at which address, and what to know of it, a line each."""


def serve(source: ConfigSource, *, watch: bool, ready: Ready) -> None:
    """Serve until the process is asked to end; requests under way are finished first.

    This process itself answers nothing: it looks after those that do, and has others take over from
    them when it is asked to read its configuration again.

    Args:
        source: where the configuration is read.
        watch: whether bundles are read again when they change.
        ready: told before the first request.

    The tables of its database are made or changed here, before any worker starts.
    """
    config = source.read()
    ignore_signals()
    asyncio.run(migrate(config.serve.database))
    # What a worker could not open is said here, once and in a line.
    notes = asyncio.run(tried(config)).notes
    listening = bind(config.serve.host, config.serve.port)
    settings = partial(_settings, watch=watch)
    with _shared_metrics(), in_one_line(), found_at(config.pid_file) as (outcomes, unfound):
        said = notes if unfound is None else (*notes, f"note: {unfound}")
        ready(config, shown(listening), said)
        supervisor = Workers(config, settings, partial(read_again, source), outcomes, [listening])
        waiting = threading.Thread(target=_refuse, args=(supervisor.should_exit, listening))
        waiting.start()
        try:
            supervisor.run()
        finally:
            supervisor.should_exit.set()
            waiting.join()
        if supervisor.none_left:
            raise InputError("no worker could be started; what they said stands above")


def _settings(config: ServeConfig, *, watch: bool) -> "ConnectionConfig":
    from farthing_gateway.connections import ConnectionConfig  # noqa: PLC0415 - an extra

    section = config.serve
    return ConnectionConfig(
        partial(worker, config, watch=watch),
        client_timeout_s=section.client_timeout_s,
        retire_s=section.deadline_s,
        factory=True,
        workers=section.workers,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=math.ceil(section.drain_s),
        timeout_worker_healthcheck=SILENT_S,
        server_header=False,
        forwarded_allow_ips=list(config.page.proxies),
    )


def _refuse(asked_to_end: threading.Event, listening: socket.socket) -> None:
    """Refuse new connections once the server is asked to end.

    The workers close the address, but while this process has it open, it takes connections that
    nobody answers.
    """
    asked_to_end.wait()
    listening.close()


def worker(config: ServeConfig, *, watch: bool) -> "Starlette":
    """Return the application of one worker."""
    from farthing_gateway.app import application  # noqa: PLC0415 - an extra

    return application(config, watch=watch)


@contextmanager
def _shared_metrics() -> Iterator[None]:
    """Give workers a folder in which their figures add up, also those of workers that ended."""
    with tempfile.TemporaryDirectory(prefix="farthing-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        yield

"""A configuration that is to be served: read, and opened once, before any worker starts with it.

While a gateway serves, that happens in a process of its own: what a file names is then found as
new workers will find it, and what goes wrong harms nothing.
"""

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.connection import Connection

from farthing.errors import ConfigError, FarthingError, InputError
from farthing_gateway.admin.state import opened_pages
from farthing_gateway.app_state import open_gateway
from farthing_gateway.config import ConfigSource, ServeConfig
from farthing_gateway.config_warnings import of_keys, remarks
from farthing_gateway.metrics import SHARED
from farthing_gateway.storage.database import named

FIXED = ("host", "port", "database", "pid_file")
"""Fields of `[serve]` that a running gateway keeps."""
LOOK_S = 0.1
"""How often it is looked whether the gateway is asked to end meanwhile."""


@dataclass(frozen=True)
class Candidate:
    """A configuration that can be served."""

    config: ServeConfig
    notes: tuple[str, ...]
    """What to know of it, a line each."""


async def tried(config: ServeConfig) -> Candidate:
    """Open all that a configuration names, and close it again.

    Raises:
        FarthingError: something cannot be opened.
    """
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(open_gateway(config, watch=False))
        if config.has_page:
            await stack.enter_async_context(opened_pages(gateway))
        found = [note for one in gateway.chat.policies.values() for note in one.notes()]
        keys = None if gateway.keys is None else await gateway.keys.list()
    if keys is not None:
        found += of_keys(config, keys, datetime.now(UTC))
    return Candidate(config, (*remarks(config), *(f"note: {note}" for note in found)))


def read_again(
    source: ConfigSource, served: ServeConfig, is_ending: Callable[[], bool]
) -> Candidate:
    """Return the configuration that a file has by now, which can take the place of another.

    Args:
        source: where it is read.
        served: what is served now.
        is_ending: says whether the gateway is asked to end.

    Raises:
        InputError: it is wrong, or changes what a running gateway keeps.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    trying = spawn.Process(target=_try, args=(source, served, theirs), name="configuration")
    shared = os.environ.pop(SHARED, None)  # it counts nothing
    trying.start()
    if shared is not None:
        os.environ[SHARED] = shared
    theirs.close()
    try:
        while not ours.poll(LOOK_S):
            if is_ending():
                raise InputError("the gateway ends")
        said: Candidate | str = ours.recv()
    except EOFError:
        raise InputError(f"{source.file}: the process that tried it ended at once") from None
    finally:
        trying.kill()
        trying.join()
        ours.close()
    if isinstance(said, str):
        raise InputError(said)
    return said


def _try(source: ConfigSource, served: ServeConfig, answer: Connection) -> None:
    for one in (signal.SIGINT, signal.SIGHUP):  # a terminal sends them to all processes
        signal.signal(one, signal.SIG_IGN)
    try:
        config = source.read()
        _check_kept(served, config)
        answer.send(asyncio.run(tried(config)))
    except FarthingError as error:
        answer.send(str(error))
    except Exception as error:  # noqa: BLE001 - whatever a hook of the user's raises
        answer.send(f"{source.file}: {type(error).__name__}: {error}")


def _check_kept(served: ServeConfig, config: ServeConfig) -> None:
    for name in FIXED:
        old, new = (getattr(one.serve, name) for one in (served, config))
        if old != new:
            old, new = (named(one) if name == "database" else one for one in (old, new))
            said = f"is {new}, and a running gateway keeps {old}: end it and start it again"
            raise ConfigError(config.file, f"serve.{name}", said)

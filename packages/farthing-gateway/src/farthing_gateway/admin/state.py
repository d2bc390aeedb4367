"""What the administrator's page holds open: a connection to read by, sessions, templates."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from jinja2 import Environment

from farthing.errors import InputError
from farthing_gateway.admin.figures import Figures
from farthing_gateway.admin.login_throttle import Attempts
from farthing_gateway.admin.rendering import environment
from farthing_gateway.admin.sessions import Sessions
from farthing_gateway.app_state import GatewayState
from farthing_gateway.monitoring.base import Watch
from farthing_gateway.monitoring.status import open_watch
from farthing_gateway.storage.database import Database, open_database
from farthing_gateway.storage.keys import Keys


@dataclass(frozen=True)
class Pages:
    """What pages need."""

    gateway: GatewayState
    keys: Keys
    database: Database
    """Reads what is recorded, by a connection of its own: it holds no writer up."""
    sessions: Sessions
    watch: Watch
    """What is known of promises in live traffic."""
    templates: Environment
    attempts: Attempts = field(default_factory=Attempts)

    @property
    def figures(self) -> Figures:
        """The sums of what is recorded."""
        return Figures(self.database)


@contextlib.asynccontextmanager
async def opened_pages(gateway: GatewayState, watch: Watch | None = None) -> AsyncIterator[Pages]:
    """Open the page of a gateway while the block runs.

    Args:
        gateway: the gateway.
        watch: says how promises are kept; None: the gateway's database.
    """
    if gateway.keys is None:
        raise InputError("the page is opened by keys, and none are needed here; set keys = true")
    where = gateway.config.serve.database
    async with contextlib.AsyncExitStack() as stack:
        database = await open_database(where)
        stack.push_async_callback(database.aclose)
        writing = await open_database(where)
        stack.push_async_callback(writing.aclose)
        if watch is None:
            watch = stored = await open_watch(where)
            stack.push_async_callback(stored.aclose)
        logged_in = Sessions(writing, gateway.keys)
        yield Pages(gateway, gateway.keys, database, logged_in, watch, environment())

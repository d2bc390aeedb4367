"""What the administrator's page holds open: a connection to read by, sessions, templates."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from jinja2 import Environment

from farthing.errors import InputError
from farthing.gateway import traffic_rows, traffic_sums
from farthing.gateway.database import Database, open_database
from farthing.gateway.house import House
from farthing.gateway.keys import Keys
from farthing.gateway.pages import promised, requests_read, sessions
from farthing.gateway.pages.attempts import Attempts
from farthing.gateway.pages.figures import Figures
from farthing.gateway.pages.rendering import environment
from farthing.gateway.pages.sessions import Sessions
from farthing.gateway.watching import tables
from farthing.gateway.watching.base import Watch
from farthing.gateway.watching.stored import open_watch


@dataclass(frozen=True)
class Pages:
    """What pages need."""

    house: House
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
async def opened_pages(house: House, watch: Watch | None = None) -> AsyncIterator[Pages]:
    """Open the page of a gateway while the block runs.

    Args:
        house: the gateway.
        watch: says how promises are kept; None: the gateway's database.

    Raises:
        InputError: the gateway has no keys, or its database cannot be opened.
    """
    if house.keys is None:
        raise InputError("the page is opened by keys, and none are needed here; set keys = true")
    where = house.config.serve.database
    recorded = (*traffic_rows.SCHEMA, *traffic_sums.SCHEMA, *tables.SCHEMA)
    schema = (*recorded, *requests_read.SCHEMA, *promised.SCHEMA)
    async with contextlib.AsyncExitStack() as stack:
        database = await open_database(where, schema)
        stack.push_async_callback(database.aclose)
        writing = await open_database(where, sessions.SCHEMA)
        stack.push_async_callback(writing.aclose)
        if watch is None:
            watch = stored = await open_watch(where)
            stack.push_async_callback(stored.aclose)
        logged_in = Sessions(writing, house.keys)
        yield Pages(house, house.keys, database, logged_in, watch, environment())

"""The alarms about a policy's mode, as the database has them."""

from farthing.gateway.database import Database, Row, moment
from farthing.gateway.redeploying.places import Place
from farthing.gateway.watching.base import Alarm

_ALARMS = """
SELECT id, policy, mode, certificate, signal, at_us, says, evidence, closed_at_us, closed_by
FROM alarms WHERE policy = $1 AND mode = $2 ORDER BY at_us DESC, id"""


async def alarms_of(database: Database, place: Place) -> list[Alarm]:
    """Return all alarms about a policy's mode, open or not, the newest first.

    Raises:
        StoreError: the database cannot be read.
    """
    rows = await database.read(_ALARMS, *place.names)
    return [_alarm(row) for row in rows]


def _alarm(row: Row) -> Alarm:
    id_, policy, mode, certificate, signal, at, says, evidence, closed, by = row
    closed_at = None if closed is None else moment(closed)
    return Alarm(id_, policy, mode, certificate, signal, moment(at), says, evidence, closed_at, by)

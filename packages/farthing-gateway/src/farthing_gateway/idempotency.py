"""A request that is sent again under the same idempotency key is neither run nor paid again."""

import hashlib
from dataclasses import dataclass

from farthing_gateway.charging import DeferredSettlements
from farthing_gateway.errors import ApiError, in_progress
from farthing_gateway.storage.keys import KeyRecord
from farthing_gateway.storage.ledger.base import Different, Done, UnderWay
from farthing_gateway.storage.ledger.ledger import AccountLedger

HEADER = "idempotency-key"


@dataclass(frozen=True)
class IdempotencyClaim:
    """The right to run a request, until its reply is kept or it is given up."""

    ledger: AccountLedger
    name: str
    waiting: DeferredSettlements
    """What is settled once the reply is kept."""

    async def end(self, status: int, body: bytes | None) -> None:
        """Keep the reply for those who send it again; None: free the key."""
        if body is None:
            await self.ledger.abandon(self.name)
        else:
            await self.ledger.finish(self.name, status, body)
        self.waiting.settle()


async def claim(
    ledger: AccountLedger, key: KeyRecord | None, once: str, body: bytes, lease_s: float
) -> IdempotencyClaim | Done:
    """Return the right to run a request, or the reply that it was given before.

    Args:
        ledger: what keeps replies.
        key: whose request it is.
        once: the idempotency key. Only its digest is kept: it may be of any length, and a client
            may put anything into it.
        body: the request, to tell another one.
        lease_s: seconds after which somebody else may run it, unless it ended before.

    Raises:
        ApiError: it is being answered, or the key was used for another request.
    """
    known = hashlib.sha256(once.encode(errors="replace")).hexdigest()
    name = f"{key.id if key else ''}:{known}"
    found = await ledger.claim(name, hashlib.sha256(body).hexdigest(), lease_s=lease_s)
    match found:
        case Done():
            return found
        case UnderWay(until=until):
            raise in_progress(until, lease_s)
        case Different():
            said = "this idempotency key was used for another request; take a new one"
            raise ApiError(422, said, code="idempotency_key_reused")
    return IdempotencyClaim(ledger, name, DeferredSettlements(ledger))

"""A check waits for whoever may still change what it reads."""

import asyncio
from collections.abc import Sequence

import asyncpg
import msgspec
import pytest

from farthing_gateway.storage.ledger.base import Amount, Claimed, Limit, LimitError, New, UnderWay
from farthing_gateway.storage.ledger.ledger import AccountLedger, open_ledger
from farthing_gateway.storage.ledger.operations import Operation, Outcome
from farthing_gateway.storage.migrations import migrate

CAP = Limit("all", "usd", "total", 15)


class Uncommitted:
    """A database in a transaction that somebody else ends."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self.connection = connection

    async def apply(self, operations: Sequence[Operation]) -> list[Outcome]:
        text = msgspec.json.encode(operations).decode()
        answer = await self.connection.fetchval("SELECT ledger_apply($1::jsonb)", text)
        return msgspec.json.decode(answer, type=list[Outcome])

    async def aclose(self) -> None: ...


@pytest.mark.parametrize("first", ["key:a", "all"])
def test_a_reservation_waits_for_one_that_is_not_committed(schema: str, first: str) -> None:
    async def inside() -> None:
        await migrate(schema)
        accounts = await open_ledger(schema)
        connection = await asyncpg.connect(schema)
        slow = AccountLedger(Uncommitted(connection))
        async with connection.transaction():
            await slow.reserve([first, "all", "key:b"], Amount(10), [CAP], lease_s=60)
            assert await slow.claim("key", "f", lease_s=60) == New()
            asked = asyncio.create_task(
                accounts.reserve(["key:b", "all"], Amount(10), [CAP], lease_s=60)
            )
            await asyncio.sleep(0.3)
            assert not asked.done()
        with pytest.raises(LimitError):
            await asked
        claimed: Claimed = await accounts.claim("key", "f", lease_s=60)
        assert isinstance(claimed, UnderWay)
        await connection.close()
        await accounts.aclose()

    asyncio.run(inside())


def test_a_claim_waits_for_one_that_is_not_committed(schema: str) -> None:
    async def inside() -> None:
        await migrate(schema)
        accounts = await open_ledger(schema)
        connection = await asyncpg.connect(schema)
        async with connection.transaction():
            slow = AccountLedger(Uncommitted(connection))
            assert await slow.claim("key", "f", lease_s=60) == New()
            asked = asyncio.create_task(accounts.claim("key", "f", lease_s=60))
            await asyncio.sleep(0.3)
            assert not asked.done()
        assert isinstance(await asked, UnderWay)
        await connection.close()
        await accounts.aclose()

    asyncio.run(inside())

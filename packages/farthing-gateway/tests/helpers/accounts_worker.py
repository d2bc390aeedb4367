"""What the tests let other processes do: `python accounts_worker.py TASK WHERE ...`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from farthing_gateway.storage.ledger.base import Amount, Hold, Limit, LimitError
from farthing_gateway.storage.ledger.ledger import AccountLedger, open_ledger

CAP = Limit("all", "usd", "total", 50_000)
SHARE = Amount(1_000)
LEASE_S = 1.0


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def reserve(accounts: AccountLedger, tries: str) -> None:
    """Reserve so often at once; say how often that was admitted."""

    async def one() -> int:
        try:
            await accounts.reserve(["key:a", "all"], SHARE, [CAP], lease_s=60)
        except LimitError:
            return 0
        return 1

    say(sum(await asyncio.gather(*(one() for _ in range(int(tries))))))


async def churn(accounts: AccountLedger, tries: str) -> None:
    """Reserve, and close in one of all ways, so often; say what was settled, in nano-dollars."""
    names = ["all", "key:a", "key:b", "key:c"]

    async def one(k: int) -> int:
        mine = [names[(k + shift) % 4] for shift in range(3)]
        hold = await accounts.reserve(mine, SHARE, [], lease_s=60)
        await accounts.sent(hold)
        close: list[Callable[[Hold], Awaitable[None]]] = [accounts.release, accounts.unknown]
        if k % 3 == 2:
            await accounts.settle(hold, Amount(700))
            return 700 if "all" in mine else 0
        await close[k % 3](hold)
        return 1_000 * (k % 3) if "all" in mine else 0

    say(sum(await asyncio.gather(*(one(k) for k in range(int(tries))))))


async def die(accounts: AccountLedger, flag: str) -> None:
    """Reserve 20 calls, send half of them, say so in a file, and wait to be killed."""
    for k in range(20):
        hold = await accounts.reserve(["all"], SHARE, [CAP], lease_s=LEASE_S, note=f"call {k}")
        if k % 2:
            await accounts.sent(hold)
    Path(flag).touch()
    await asyncio.sleep(60)


async def sweep(accounts: AccountLedger, _: str) -> None:
    """Sweep; say what came back and what was charged."""
    swept = await accounts.sweep()
    say(swept.returned, swept.charged)


async def claim(accounts: AccountLedger, key: str) -> None:
    """Claim a key twenty times at once; say how often it was new."""
    claims = [accounts.claim(key, "request", lease_s=60) for _ in range(20)]
    say(sum(type(one).__name__ == "New" for one in await asyncio.gather(*claims)))


async def main(task: str, where: str, argument: str) -> None:
    accounts = await open_ledger(where)
    say("ready")
    sys.stdin.readline()
    tasks = {one.__name__: one for one in (reserve, churn, die, sweep, claim)}
    await tasks[task](accounts, argument)
    await accounts.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

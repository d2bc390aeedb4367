"""Processes that share a database, and die: no cap is passed, no call is lost or stuck."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import accounts_worker
import pytest
from accounts_worker import LEASE_S

from farthing_gateway.storage.ledger.base import (
    AccountBalance,
    Amount,
    LimitError,
    Swept,
    UnknownCall,
)
from farthing_gateway.storage.ledger.ledger import open_ledger

WORKER = accounts_worker.__file__


def start(task: str, where: str, argument: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WORKER, task, where, argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def together(task: str, where: str, argument: str, processes: int) -> list[str]:
    """Let processes do a task at the same time; return what each said."""
    workers = [start(task, where, argument) for _ in range(processes)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=120)[0].strip() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * processes
    return said


def total(where: str, account: str = "all") -> AccountBalance:
    async def inside() -> AccountBalance:
        accounts = await open_ledger(where)
        balances = await accounts.balances([account])
        await accounts.aclose()
        return balances[-1]

    return asyncio.run(inside())


def swept(where: str) -> tuple[Swept, list[UnknownCall]]:
    async def inside() -> tuple[Swept, list[UnknownCall]]:
        accounts = await open_ledger(where)
        try:
            return await accounts.sweep(), await accounts.unknowns()
        finally:
            await accounts.aclose()

    return asyncio.run(inside())


def killed(where: str, flag: Path) -> None:
    """Kill a process that has reserved 20 calls and sent every second one of them."""
    worker = start("die", where, str(flag))
    assert worker.stdin is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    end = time.monotonic() + 60
    while not flag.exists():
        assert worker.poll() is None
        assert time.monotonic() < end
        time.sleep(0.02)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()


@pytest.mark.slow
def test_four_processes_get_what_a_cap_is_worth(where: str) -> None:
    """They also make the tables at the same time."""
    admitted = together("reserve", where, "50", processes=4)
    assert sum(map(int, admitted)) == 50
    assert total(where).held == total(where, "key:a").held == Amount(50_000, 0, 50)


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_stuck(where: str, tmp_path: Path) -> None:
    """What it had not sent comes back once, what it had is charged and marked once."""
    killed(where, tmp_path / "flag")
    time.sleep(LEASE_S)
    said = together("sweep", where, "", processes=2)
    counts = [tuple(map(int, one.split())) for one in said]
    assert (sum(one[0] for one in counts), sum(one[1] for one in counts)) == (10, 10)
    balance = total(where)
    assert (balance.held, balance.settled) == (Amount(0, 0, 0), Amount(10_000, 0, 10))
    again, marked = swept(where)
    assert again == Swept(0, 0)
    assert sorted(one.note for one in marked) == sorted(f"call {k}" for k in range(1, 20, 2))


def test_a_lease_that_lasts_is_left_alone(where: str, tmp_path: Path) -> None:
    """Until it ends, what a dead process held counts against the cap."""

    async def inside() -> None:
        accounts = await open_ledger(where)
        holds = [
            await accounts.reserve(["all"], accounts_worker.SHARE, [], lease_s=60)
            for _ in range(31)
        ]
        with pytest.raises(LimitError):
            await accounts.reserve(
                ["all"], accounts_worker.SHARE, [accounts_worker.CAP], lease_s=60
            )
        await asyncio.sleep(LEASE_S)
        assert await accounts.sweep() == Swept(10, 10)
        await accounts.reserve(["all"], accounts_worker.SHARE, [accounts_worker.CAP], lease_s=60)
        for hold in holds:
            await accounts.settle(hold, Amount(1))
        await accounts.aclose()

    killed(where, tmp_path / "flag")
    asyncio.run(inside())


@pytest.mark.slow
def test_four_processes_race_for_one_key(where: str) -> None:
    assert sorted(together("claim", where, "key", processes=4)) == ["0", "0", "0", "1"]


@pytest.mark.slow
def test_processes_that_do_everything_at_once_agree_with_their_sum(where: str) -> None:
    """Each names its accounts in another order; nothing is lost, nothing waits in a circle."""
    said = together("churn", where, "400", processes=4)
    balance = total(where)
    assert (balance.held, balance.settled.nano) == (Amount(0, 0, 0), sum(map(int, said)))


@pytest.mark.slow
def test_no_cap_is_passed_in_many_rounds(where: str) -> None:
    admitted = together("reserve", where, "1000", processes=4)
    assert sum(map(int, admitted)) == 50
    assert total(where).held == Amount(50_000, 0, 50)

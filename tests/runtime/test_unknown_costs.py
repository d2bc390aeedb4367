"""What nobody knows the cost of counts as the most that it can cost, wherever money is kept."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from farthing.runtime.question_budget import Purse, Pursed

from farthing.budgets.memory_ledger import MemoryLedger
from farthing.errors import BudgetError, ModelError, ModelTimeoutError
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.retry import Patience, Retrying
from farthing.models.scripted import Reply, ScriptedModel
from farthing.runtime.base import DirectDesk
from farthing.runtime.journal import Attempt, Entry, StoreBooks, entry
from farthing.runtime.meter import LoggedDesk, Paid, Till
from farthing.runtime.ray_engine import RemoteBooks
from farthing.traces.store import Store

LARGEST = 1_000
PROMPT = Prompt((Message("user", "?"),))
UNKNOWN = Completion("4", "m", "stop", Usage(1, 1), None, 0.0)
KNOWN = Completion("4", "m", "stop", Usage(1, 1), 10, 0.0)
BROKEN = ModelTimeoutError("nobody knows what became of it", cost_nano=None)


class Dear(ScriptedModel):
    """Gives these replies in turn, and the last one from then on; a call can cost 1,000."""

    def __init__(self, *replies: Reply) -> None:
        left = list(replies)
        super().__init__(lambda _: left.pop(0) if len(left) > 1 else left[0])

    def largest_cost_nano(self, prompt: Prompt) -> int:
        return LARGEST


class Stuck(Dear):
    """Is cancelled while it answers."""

    async def complete(self, prompt: Prompt) -> Completion:
        raise asyncio.CancelledError


# ---- The budget of a question


def ask(purse: Purse, model: Any) -> Completion | BaseException:
    async def call() -> Completion:
        return await purse.desk(DirectDesk()).ask(model, PROMPT)

    try:
        return asyncio.run(call())
    except (ModelError, BudgetError, asyncio.CancelledError) as problem:
        return problem


@pytest.mark.parametrize("model", [Dear(UNKNOWN), Dear(BROKEN), Stuck(KNOWN)])
def test_a_question_pays_the_largest(model: Dear) -> None:
    purse = Purse(MemoryLedger(2 * LARGEST + LARGEST - 1))
    for paid in (LARGEST, 2 * LARGEST):
        assert not isinstance(ask(purse, model), BudgetError)
        assert purse.spent_nano == paid
        assert purse.left_nano == 3 * LARGEST - 1 - paid
    assert isinstance(ask(purse, model), BudgetError)


def test_tries_of_unknown_cost_are_paid_one_by_one() -> None:
    """Two of three fail without a word on the cost; the reply's own total is unknown then too."""
    purse = Purse(MemoryLedger(10 * LARGEST))
    model = Dear(BROKEN, BROKEN, KNOWN)
    reply = ask(purse, Retrying(Pursed(model), Patience(tries=3, first_s=0.0)))
    assert isinstance(reply, Completion)
    assert reply.cost_nano is None
    assert len(model.calls) == 3
    assert purse.spent_nano == 3 * LARGEST


def test_a_budget_ends_tries_of_unknown_cost() -> None:
    purse = Purse(MemoryLedger(2 * LARGEST))
    model = Dear(BROKEN)
    found = ask(purse, Retrying(Pursed(model), Patience(tries=9, first_s=0.0)))
    assert isinstance(found, BudgetError)
    assert len(model.calls) == 2
    assert purse.spent_nano == 2 * LARGEST


def test_without_a_budget_the_sum_is_unknown_from_then_on() -> None:
    purse = Purse()
    spent = []
    for model in (Dear(KNOWN), Dear(UNKNOWN), Dear(KNOWN)):
        ask(purse, model)
        spent.append(purse.spent_nano)
    assert spent == [10, None, None]


# ---- The journal, and the cap on everything


class _Here:
    """Calls a method of the books in another process, which is this one."""

    def __init__(self, books: StoreBooks) -> None:
        self._books = books

    def __getattr__(self, name: str) -> Any:
        class Method:
            remote = staticmethod(getattr(self._books, name))

        return Method


Open = Callable[[int], StoreBooks | RemoteBooks]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture(params=["local", "remote, its own share"])
def opened(request: pytest.FixtureRequest, path: Path) -> Iterator[Open]:
    with Store.open(path) as store:

        def books(cap_nano: int) -> StoreBooks | RemoteBooks:
            if request.param == "local":
                return StoreBooks(store, cap_nano, "test")
            return RemoteBooks(_Here(StoreBooks(store, 100 * LARGEST, "test")), cap_nano)

        yield books


def rows(path: Path) -> list[tuple[Any, ...]]:
    with Store.open(path) as store:
        return store.connection.execute(
            "SELECT state, reserved_nano, cost_nano FROM call_log ORDER BY number"
        ).fetchall()


def spending(path: Path) -> tuple[int, int]:
    with Store.open(path) as store:
        settled, reserved = store.connection.execute(
            "SELECT settled_nano, reserved_nano FROM spending"
        ).fetchone()
    return settled, reserved


@pytest.mark.parametrize(("reply", "state"), [(UNKNOWN, "completed"), (BROKEN, "failed")])
def test_the_cap_counts_the_largest(opened: Open, path: Path, reply: Reply, state: str) -> None:
    """A cap worth two calls and almost a third one."""
    model = Dear(reply)

    async def calls() -> list[object]:
        till = Till(opened(3 * LARGEST - 1))
        desk = LoggedDesk(Attempt("q", 1, "base"), till._books, till)
        found: list[object] = []
        for _ in range(4):
            try:
                found.append(await desk.ask(Paid(model, till), PROMPT))
            except (ModelError, BudgetError) as problem:
                found.append(problem)
        return found

    found = asyncio.run(calls())
    assert len(model.calls) == 2
    assert [isinstance(one, BudgetError) for one in found] == [False, False, True, True]
    assert rows(path) == [(state, LARGEST, LARGEST)] * 2
    assert spending(path) == (2 * LARGEST, 0)


def test_what_an_unknown_try_counted_as_is_still_spent_when_it_is_found_again(path: Path) -> None:
    """A reply that comes from the log costs what was charged for it and for the tries before."""

    async def call(books: StoreBooks, model: Dear) -> Completion:
        till = Till(books)
        return await LoggedDesk(Attempt("q", 1, "base"), books, till).ask(
            Retrying(Paid(model, till), Patience(first_s=0.0)), PROMPT
        )

    with Store.open(path) as store:
        asyncio.run(call(StoreBooks(store, 10 * LARGEST, "test"), Dear(BROKEN, UNKNOWN)))
    nobody = Dear(KNOWN)
    with Store.open(path) as store:
        books = StoreBooks(store, 10 * LARGEST, "test")
        again = asyncio.run(call(books, nobody))
        assert books.balance().settled_nano == 2 * LARGEST
    assert (again.cost_nano, again.tries, nobody.calls) == (2 * LARGEST, 2, [])


def test_a_call_that_its_process_did_not_survive_counts_in_full(path: Path) -> None:
    def made(number: int) -> Entry:
        return entry(Attempt(f"q{number}", 1, "base"), "m", PROMPT, 0)

    async def die(store: Store) -> None:
        books = StoreBooks(store, 10 * LARGEST, "test")
        await books.fail(await books.start(made(0), LARGEST), "timeout", "slow", 3)
        await books.start(made(1), LARGEST)

    with Store.open(path) as store:
        asyncio.run(die(store))
    assert rows(path) == [("failed", LARGEST, 3), ("started", LARGEST, None)]
    with Store.open(path) as store:
        books = StoreBooks(store, 10 * LARGEST, "test")
        assert [one.reserved_nano for one in books.unknown()] == [LARGEST]
    assert rows(path) == [("failed", LARGEST, 3), ("unknown", LARGEST, LARGEST)]
    assert spending(path) == (LARGEST + 3, 0)

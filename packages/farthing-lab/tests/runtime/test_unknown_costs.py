"""What nobody knows the cost of counts as the most that it can cost, wherever money is kept."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from farthing.errors import BudgetError, ModelError, ModelTimeoutError
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.retry import Retrying, RetryPolicy
from farthing.models.scripted import Reply, ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.journal import Attempt, Entry, StoreJournal, entry
from farthing.runtime.meter import Meter, MeteredClient, QuestionBudget
from farthing.tasks.base import Question
from farthing.traces.store import Store
from farthing_lab.comparison.collect_on_ray import RemoteJournal

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


def client(meter: Meter, budget: QuestionBudget | None = None) -> MeteredClient:
    return meter.client(Question("q", "?"), 1, BaseAgent(Dear(KNOWN)), budget)


# ---- The budget of a question


def ask(budget: QuestionBudget, model: Any) -> Completion | BaseException:
    async def call() -> Completion:
        return await client(Meter(), budget).ask(model, PROMPT)

    try:
        return asyncio.run(call())
    except (ModelError, BudgetError, asyncio.CancelledError) as problem:
        return problem


@pytest.mark.parametrize("model", [Dear(UNKNOWN), Dear(BROKEN), Stuck(KNOWN)])
def test_a_question_pays_the_largest(model: Dear) -> None:
    budget = QuestionBudget.of(2 * LARGEST + LARGEST - 1)
    for paid in (LARGEST, 2 * LARGEST):
        assert not isinstance(ask(budget, model), BudgetError)
        assert budget.spent_nano == paid
        assert budget.left_nano == 3 * LARGEST - 1 - paid
    assert isinstance(ask(budget, model), BudgetError)


def test_tries_of_unknown_cost_are_paid_one_by_one() -> None:
    """Two of three fail without a word on the cost; the reply's own total is unknown then too."""
    budget = QuestionBudget.of(10 * LARGEST)
    model = Dear(BROKEN, BROKEN, KNOWN)
    reply = ask(budget, Retrying(model, RetryPolicy(tries=3, first_s=0.0)))
    assert isinstance(reply, Completion)
    assert reply.cost_nano is None
    assert len(model.calls) == 3
    assert budget.spent_nano == 2 * LARGEST + 10


def test_a_budget_ends_tries_of_unknown_cost() -> None:
    budget = QuestionBudget.of(2 * LARGEST)
    model = Dear(BROKEN)
    found = ask(budget, Retrying(model, RetryPolicy(tries=9, first_s=0.0)))
    assert isinstance(found, BudgetError)
    assert len(model.calls) == 2
    assert budget.spent_nano == 2 * LARGEST


def test_without_a_budget_the_sum_is_unknown_from_then_on() -> None:
    budget = QuestionBudget()
    spent = []
    for model in (Dear(KNOWN), Dear(UNKNOWN), Dear(KNOWN)):
        ask(budget, model)
        spent.append(budget.spent_nano)
    assert spent == [10, None, None]


# ---- The journal, and the cap on everything


class _Here:
    """Calls a method of the journal in another process, which is this one."""

    def __init__(self, journal: StoreJournal) -> None:
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        class Method:
            remote = staticmethod(getattr(self._journal, name))

        return Method


Open = Callable[[int], StoreJournal | RemoteJournal]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture(params=["local", "remote, its own share"])
def opened(request: pytest.FixtureRequest, path: Path) -> Iterator[Open]:
    with Store.open(path) as store:

        def journal(cap_nano: int) -> StoreJournal | RemoteJournal:
            if request.param == "local":
                return StoreJournal(store, cap_nano, "test")
            return RemoteJournal(_Here(StoreJournal(store, 100 * LARGEST, "test")), cap_nano)

        yield journal


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
        asking = client(Meter(opened(3 * LARGEST - 1)))
        found: list[object] = []
        for _ in range(4):
            try:
                found.append(await asking.ask(model, PROMPT))
            except (ModelError, BudgetError) as problem:
                found.append(problem)
        return found

    found = asyncio.run(calls())
    assert len(model.calls) == 2
    assert [isinstance(one, BudgetError) for one in found] == [False, False, True, True]
    assert rows(path) == [(state, LARGEST, LARGEST)] * 2
    assert spending(path) == (2 * LARGEST, 0)


def test_what_an_unknown_try_counted_as_is_still_spent_when_it_is_found_again(path: Path) -> None:
    """A reply from the journal costs what was charged for it and for the tries before it."""

    async def call(journal: StoreJournal, model: Dear) -> Completion:
        patient = Retrying(model, RetryPolicy(first_s=0.0))
        return await client(Meter(journal)).ask(patient, PROMPT)

    with Store.open(path) as store:
        asyncio.run(call(StoreJournal(store, 10 * LARGEST, "test"), Dear(BROKEN, UNKNOWN)))
    nobody = Dear(KNOWN)
    with Store.open(path) as store:
        journal = StoreJournal(store, 10 * LARGEST, "test")
        again = asyncio.run(call(journal, nobody))
        assert journal.balance().settled_nano == 2 * LARGEST
    assert (again.cost_nano, again.tries, nobody.calls) == (2 * LARGEST, 2, [])


def test_a_call_that_its_process_did_not_survive_counts_in_full(path: Path) -> None:
    def made(number: int) -> Entry:
        return entry(Attempt(f"q{number}", 1, "base"), "m", PROMPT, 0)

    async def die(store: Store) -> None:
        journal = StoreJournal(store, 10 * LARGEST, "test")
        await journal.fail(await journal.start(made(0), LARGEST), ModelTimeoutError("slow"), 3)
        await journal.start(made(1), LARGEST)

    with Store.open(path) as store:
        asyncio.run(die(store))
    assert rows(path) == [("failed", LARGEST, 3), ("started", LARGEST, None)]
    with Store.open(path) as store:
        journal = StoreJournal(store, 10 * LARGEST, "test")
        assert [one.reserved_nano for one in journal.unknown()] == [LARGEST]
    assert rows(path) == [("failed", LARGEST, 3), ("unknown", LARGEST, LARGEST)]
    assert spending(path) == (LARGEST + 3, 0)

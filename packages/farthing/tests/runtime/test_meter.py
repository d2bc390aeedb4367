"""One place pays for every try: the job's cap, the question's budget and a call's own bound."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farthing.budgets.ledger import Balance
from farthing.errors import BudgetError, ModelConnectionError, ModelTimeoutError
from farthing.models.base import Completion, Message, Model, Prompt, Usage
from farthing.models.retry import Retrying, RetryPolicy
from farthing.models.scripted import Reply, ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.journal import StoreJournal
from farthing.runtime.meter import Meter, MeteredClient, QuestionBudget
from farthing.tasks.base import Question
from farthing.traces.store import Store

LARGEST = 100
Open = Callable[[int], StoreJournal]
PROMPT = Prompt((Message("user", "?"),))
OTHER = Prompt((Message("user", "and now?"),))
QUESTION = Question("q", "?")
FREE_FAILURE = ModelConnectionError("no server", cost_nano=0)
LOST = ModelTimeoutError("slow", cost_nano=None)  # nobody knows what it cost


class Priced(ScriptedModel):
    """Replies in turn, the last one from then on; a try costs at most LARGEST."""

    def __init__(self, *replies: Reply, latency_s: float = 0.0) -> None:
        left = list(replies)
        super().__init__(lambda _: left.pop(0) if len(left) > 1 else left[0], latency_s=latency_s)

    def largest_cost_nano(self, prompt: Prompt) -> int:
        return LARGEST


def says(cost_nano: int | None) -> Completion:
    return Completion("4", "scripted", "stop", Usage(1, 1), cost_nano, 0.0)


def patient(model: Model, tries: int = 9) -> Model:
    return Retrying(model, RetryPolicy(tries=tries, first_s=0.0))


def client(
    meter: Meter, budget: QuestionBudget | None = None, bound: int | None = None, number: int = 1
) -> MeteredClient:
    return meter.client(QUESTION, number, BaseAgent(Priced(says(0))), budget, bound)


def balance(budget: QuestionBudget) -> Balance:
    assert budget.ledger is not None
    return budget.ledger.balance()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Open]:
    """Take over the journal of a new store, with a cap."""
    with Store.open(tmp_path / "a.db") as opened:
        yield lambda cap_nano: StoreJournal(opened, cap_nano, "test")


def tries(journal: StoreJournal) -> list[tuple[str, int, int | None]]:
    rows = journal._connection.execute("SELECT state, reserved_nano, cost_nano FROM call_log")
    return rows.fetchall()


def test_where_the_cap_refuses_the_question_gets_its_money_back(store: Open) -> None:
    journal, budget = store(LARGEST - 1), QuestionBudget.of(10 * LARGEST)
    model = Priced(says(1))
    with pytest.raises(BudgetError, match="raise the cap"):
        asyncio.run(client(Meter(journal), budget).ask(patient(model), PROMPT))
    assert (balance(budget).settled_nano, balance(budget).reserved_nano) == (0, 0)
    assert (budget.spent_nano, model.calls, tries(journal)) == (0, [], [])


def test_where_the_budget_refuses_the_cap_is_untouched(store: Open) -> None:
    journal, budget = store(10 * LARGEST), QuestionBudget.of(LARGEST - 1)
    model = Priced(says(1))
    with pytest.raises(BudgetError, match="of the question's budget of"):
        asyncio.run(client(Meter(journal), budget).ask(patient(model), PROMPT))
    assert (journal.balance().reserved_nano, journal.balance().settled_nano) == (0, 0)
    assert (model.calls, tries(journal)) == ([], [])


def test_who_is_cancelled_in_line_gives_back_and_under_way_pays(store: Open) -> None:
    """One try holds the whole cap, a second waits for it; both are cancelled."""
    journal = store(LARGEST)
    paying, waiting = QuestionBudget.of(10 * LARGEST), QuestionBudget.of(10 * LARGEST)

    async def run() -> None:
        meter, model = Meter(journal), Priced(says(1), latency_s=60.0)
        tasks = [
            asyncio.ensure_future(client(meter, budget, number=number).ask(model, PROMPT))
            for number, budget in enumerate((paying, waiting), start=1)
        ]
        await asyncio.sleep(0.1)
        assert [balance(budget).reserved_nano for budget in (paying, waiting)] == [LARGEST] * 2
        for task in reversed(tasks):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert (balance(waiting).settled_nano, balance(waiting).reserved_nano) == (0, 0)
    assert (balance(paying).settled_nano, balance(paying).reserved_nano) == (LARGEST, 0)
    assert tries(journal) == [("started", LARGEST, None)]


@pytest.mark.parametrize("reply", [says(None), LOST])
def test_an_unknown_cost_is_the_largest_in_both_ledgers(store: Open, reply: Reply) -> None:
    journal, budget = store(10 * LARGEST), QuestionBudget.of(10 * LARGEST)
    asking = client(Meter(journal), budget).ask(Priced(reply), PROMPT)
    asyncio.run(_ends(asking))
    assert (balance(budget).settled_nano, budget.spent_nano) == (LARGEST, LARGEST)
    assert journal.balance().settled_nano == LARGEST
    assert [row[1:] for row in tries(journal)] == [(LARGEST, LARGEST)]


async def _ends(asking: object) -> None:
    await asyncio.gather(asking, return_exceptions=True)  # type: ignore[call-overload]


def test_without_any_limit_a_model_needs_no_price_and_an_unknown_cost_stays_one() -> None:
    budget = QuestionBudget()
    unpriced = ScriptedModel(lambda _: "4", price=None)
    assert asyncio.run(client(Meter(), budget).ask(patient(unpriced), PROMPT)).text == "4"
    assert budget.spent_nano is None


# ---- A call's own bound


def test_the_tries_of_a_call_never_reserve_beyond_its_bound() -> None:
    """A lost try counts as the largest: of a bound worth two and a half, two are sent."""
    model, meter, budget = Priced(LOST), Meter(), QuestionBudget.of(100 * LARGEST)
    bounded = client(meter, budget, bound=5 * LARGEST // 2, number=3)
    with pytest.raises(BudgetError, match=r"round 3 can cost \$0.0000001, .*\$0.00000005 is"):
        asyncio.run(bounded.ask(patient(model), PROMPT))
    assert len(model.calls) == 2
    assert balance(budget).settled_nano == 2 * LARGEST
    assert balance(budget).reserved_nano == 0
    asyncio.run(client(meter, budget, bound=LARGEST).ask(patient(Priced(says(1))), PROMPT))


def test_what_tries_did_not_use_is_free_for_the_next() -> None:
    """Five failures at no cost and three prompts at 30 each fit a bound worth one and a half."""
    model = Priced(*[FREE_FAILURE] * 5, says(30))
    bounded = client(Meter(), bound=3 * LARGEST // 2)

    async def run() -> None:
        for prompt in (PROMPT, OTHER):
            await bounded.ask(patient(model), prompt)
        with pytest.raises(BudgetError):
            await bounded.ask(patient(model), PROMPT)

    asyncio.run(run())
    assert len(model.calls) == 7


def test_a_bound_holds_between_prompts_that_are_sent_at_once() -> None:
    model = Priced(says(1), latency_s=0.01)
    bounded = client(Meter(), bound=3 * LARGEST)

    async def run() -> list[object]:
        prompts = [Prompt((Message("user", str(k)),)) for k in range(8)]
        return await asyncio.gather(
            *(bounded.ask(model, prompt) for prompt in prompts), return_exceptions=True
        )

    found = asyncio.run(run())
    assert sum(isinstance(one, BudgetError) for one in found) == 5
    assert len(model.calls) == 3


# ---- What the journal knows


def test_a_known_reply_counts_at_its_first_price(store: Open) -> None:
    """Under a budget that allowed it then it goes the same way, and nobody is asked."""
    journal = store(100 * LARGEST)
    model = Priced(LOST, LOST, says(7))
    first, again, less = (QuestionBudget.of(nano) for nano in (300, 300, LARGEST))
    asyncio.run(client(Meter(journal), first).ask(patient(model), PROMPT))
    found = asyncio.run(client(Meter(journal), again).ask(patient(model), PROMPT))
    assert (first.spent_nano, again.spent_nano) == (207, 207)
    assert (found.cost_nano, found.tries, len(model.calls)) == (207, 3, 3)
    # It cost more than one try can, and yet nothing was overcharged: the rest may be spent.
    assert balance(again).overcharged_nano == 0
    assert balance(again).left_nano == 93
    with pytest.raises(BudgetError):
        asyncio.run(client(Meter(journal), less).ask(patient(model), PROMPT))
    assert journal.balance().settled_nano == 207


def test_tries_that_failed_in_an_earlier_run_count_before_the_next_is_made(store: Open) -> None:
    journal = store(100 * LARGEST)
    model = Priced(LOST, LOST, says(7))
    with pytest.raises(ModelTimeoutError):
        asyncio.run(client(Meter(journal)).ask(patient(model, tries=2), PROMPT))
    enough, short = QuestionBudget.of(300), QuestionBudget.of(299)
    with pytest.raises(BudgetError):
        asyncio.run(client(Meter(journal), short).ask(patient(model), PROMPT))
    assert len(model.calls) == 2
    found = asyncio.run(client(Meter(journal), enough).ask(patient(model), PROMPT))
    assert (found.cost_nano, found.tries, enough.spent_nano) == (207, 3, 207)

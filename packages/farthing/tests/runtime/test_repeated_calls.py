"""One prompt sent several times is as many calls: each is paid, and comes back in its place."""

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from farthing.errors import ModelTimeoutError
from farthing.models.base import Completion, Message, Model, Prompt, Usage
from farthing.models.scripted import Reply, ScriptedModel
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.base import AgentReply, Client, CountingClient, Turn, recorded
from farthing.runtime.dry_run import estimate
from farthing.runtime.journal import Attempt, StoreJournal, entry
from farthing.runtime.meter import Meter, MeteredClient
from farthing.runtime.protocol import Independent, RecordingPlan
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.tasks.tools import ToolReply
from farthing.traces.base import Call
from farthing.traces.store import Store

PLENTY = 10**12
LARGEST = 1_000
PROMPT = Prompt((Message("user", "A number from 1 to 6?"),), temperature=1.0)
ATTEMPT = Attempt("q", 1, "base")


class Die(ScriptedModel):
    """Gives another number each time, for ten nano-dollars times the number."""

    def __init__(self, fails_at: int | None = None, first: int = 1) -> None:
        numbers = count(first)

        def reply(_: Prompt) -> Reply:
            number = next(numbers)
            if number == fails_at:
                return ModelTimeoutError("slow", cost_nano=7)
            return Completion(str(number), "die", "stop", Usage(1, 1), 10 * number, 0.0)

        super().__init__(reply, name="die")

    def largest_cost_nano(self, prompt: Prompt) -> int:
        return LARGEST


class Dice:
    """A tool that says another number each time."""

    name, purpose, cost_nano = "dice", "throws dice", 5

    def __init__(self) -> None:
        self.thrown: list[str] = []

    async def run(self, query: str) -> ToolReply:
        self.thrown.append(query)
        return ToolReply(str(len(self.thrown)), self.cost_nano)


def opened(journal: StoreJournal, attempt: Attempt = ATTEMPT) -> MeteredClient:
    """Open the client of an attempt."""
    meter = Meter(journal, {attempt.role: attempt.parameters})
    agent = BaseAgent(Die(), role=attempt.role)
    return meter.client(Question(attempt.question, "?"), attempt.round, agent)


async def throw(
    journal: StoreJournal, model: Model, times: int, attempt: Attempt = ATTEMPT
) -> list[tuple[str, int | None]]:
    """Ask the same a number of times through one client."""
    client = opened(journal, attempt)
    found = [await client.ask(model, PROMPT) for _ in range(times)]
    return [(one.text, one.cost_nano) for one in found]


def run(path: Path, model: Model, times: int, **options: Any) -> list[tuple[str, int | None]]:
    """The same in a process of its own, as far as the store can tell."""
    with Store.open(path) as store:
        return asyncio.run(throw(StoreJournal(store, PLENTY, "test"), model, times, **options))


def settled(path: Path) -> int:
    with Store.open(path) as store:
        return StoreJournal(store, PLENTY, "test").balance().settled_nano


def test_each_is_asked_and_paid_and_comes_back_in_its_own_place(tmp_path: Path) -> None:
    path, die, nobody = tmp_path / "a.db", Die(), Die(first=100)
    made = run(path, die, 4)
    assert made == [("1", 10), ("2", 20), ("3", 30), ("4", 40)]
    assert len(die.calls) == 4
    assert settled(path) == 100
    assert run(path, nobody, 4) == made
    assert (nobody.calls, settled(path)) == ([], 100)


def test_a_run_that_was_cut_goes_on_with_the_next_of_them(tmp_path: Path) -> None:
    path, more = tmp_path / "a.db", Die(first=5)
    run(path, Die(), 2)
    assert run(path, more, 4) == [("1", 10), ("2", 20), ("5", 50), ("6", 60)]
    assert len(more.calls) == 2
    assert settled(path) == 140


def test_other_attempts_count_for_themselves(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    others = [
        Attempt("q2", 1, "base"),
        Attempt("q", 2, "base"),
        Attempt("q", 1, "guide"),
        Attempt("q", 1, "base", "effort=high"),
    ]
    for k, attempt in enumerate([ATTEMPT, *others]):
        assert run(path, Die(first=2 * k), 2, attempt=attempt) == [
            (str(n), 10 * n) for n in (2 * k, 2 * k + 1)
        ]
    with Store.open(path) as store:
        keys = "SELECT count(DISTINCT key) FROM call_log"
        assert store.connection.execute(keys).fetchone() == (10,)


def test_all_at_once_are_as_many_calls(tmp_path: Path) -> None:
    """Their places are those of the asking, whoever is answered first."""
    path, die = tmp_path / "a.db", Die()

    async def at_once(journal: StoreJournal, model: Model) -> list[str]:
        client = opened(journal)
        found = await asyncio.gather(*(client.ask(model, PROMPT) for _ in range(5)))
        return [one.text for one in found]

    texts = []
    for model in (die, Die(first=100)):
        with Store.open(path) as store:
            texts.append(asyncio.run(at_once(StoreJournal(store, PLENTY, "test"), model)))
    assert sorted(texts[0]) == ["1", "2", "3", "4", "5"]
    assert texts[1] == texts[0]
    assert len(die.calls) == 5


def test_a_failed_try_belongs_to_its_own_place(tmp_path: Path) -> None:
    """The second of three fails once: its cost is the second's, when the run goes on."""
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        journal = StoreJournal(store, PLENTY, "test")
        [failure] = asyncio.run(_caught(journal, Die(fails_at=2)))
        assert isinstance(failure, ModelTimeoutError)
    assert run(path, Die(first=3), 3) == [("1", 10), ("3", 30 + 7), ("4", 40)]


async def _caught(journal: StoreJournal, model: Model) -> list[BaseException]:
    return [
        one
        for one in await asyncio.gather(throw(journal, model, 3), return_exceptions=True)
        if isinstance(one, BaseException)
    ]


def test_a_tool_that_is_used_twice_alike_is_used_twice(tmp_path: Path) -> None:
    async def use(journal: StoreJournal, tool: Dice) -> list[str]:
        client = opened(journal)
        return [(await client.use(tool, "2d6")).text for _ in range(3)]

    thrown = []
    for _ in range(2):
        tool = Dice()
        with Store.open(tmp_path / "a.db") as store:
            journal = StoreJournal(store, PLENTY, "test")
            assert asyncio.run(use(journal, tool)) == ["1", "2", "3"]
            assert journal.balance().settled_nano == 15
        thrown.append(len(tool.thrown))
    assert thrown == [3, 0]


def test_the_place_is_part_of_the_key() -> None:
    keys = {entry(ATTEMPT, "die", PROMPT, place).key for place in range(5)}
    assert len(keys) == 5


class Thrower:
    """An agent that asks the same three times and uses the same tool twice."""

    role = "base"

    def __init__(self, model: Model) -> None:
        self.model = model

    async def act(self, turn: Turn, client: Client) -> Call:
        async def speak(_: Turn, counting: CountingClient) -> AgentReply:
            said = [(await counting.ask(self.model, PROMPT)).text for _ in range(3)]
            said += [(await counting.use(Dice(), "2d6")).text for _ in range(2)]
            return AgentReply(" ".join(said), said[0])

        return await recorded(self, turn, client, speak)


def test_an_estimate_prices_each_of_them_that_is_not_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    largest, calls = [], []
    for done in range(4):
        run(path, Die(), done)
        found = _priced(path, [Question("q", "?")])
        largest.append(found[0])
        calls.append(found[1])
    assert calls == [3, 2, 1, 0]
    assert largest == [n * LARGEST + 2 * Dice.cost_nano for n in calls]


def _priced(path: Path, questions: Sequence[Question]) -> tuple[int, int]:
    with Store.open(path) as store:
        journal = StoreJournal(store, PLENTY, "test")
        recording = RecordingPlan(Independent((Thrower(Die()),), 1, TEXT), TEXT)
        sums = asyncio.run(estimate(questions, recording, journal, {}))
    return sums.largest_nano, sums.calls

"""An agent with tools under a budget: what it is told, and that the budget holds, over HTTP too."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import Endpoint, Messages
from sums import MODEL, farthing

from farthing.errors import BadRequestError, ConfigError, UnpricedModelError
from farthing.models.base import Completion, Prompt, Usage
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import PriceTable, Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing.money import nano_from_usd
from farthing.runtime.base import DirectClient, Turn
from farthing.runtime.job import read_job
from farthing.runtime.protocol import Dialogue, cost_bound
from farthing.runtime.system import system_of
from farthing.tasks.base import Question
from farthing.tasks.tools import ToolReply, always
from farthing.traces.base import Call
from farthing.traces.store import Store
from farthing_lab.agents.react import ReactAgent
from farthing_lab.methods.agents.budget_tracker import BUDGET_TRACKER, GUIDANCE
from farthing_lab.tasks.linked_facts import LinkedFacts, extract, linked_facts
from farthing_lab.tasks.local_search import LocalSearch

QUESTION = Question("q", "Who is the mayor of Torva?", gold=("Ada Marek",))
TOLD = re.compile(r"search (\d+) used, (\d+) left of (\d+)")
PRICE = TokenPrice((Rates(Decimal("0.5"), Decimal(2)),))


class Lookup:
    """A tool that counts by itself how often it was really used."""

    name, purpose, cost_nano = "search", "searches.", 1_000

    def __init__(self, text: str = "Nothing was found.", failure: Exception | None = None) -> None:
        self.text, self.failure, self.used = text, failure, 0

    async def run(self, query: str) -> ToolReply:
        self.used += 1
        if self.failure:
            raise self.failure
        return ToolReply(self.text, self.cost_nano)


def play(
    replies: list[str] | Callable[[Prompt], str], tool: Lookup, **given: Any
) -> tuple[Call, list[str]]:
    """Return the call, and the last message of each prompt."""
    left = iter(replies) if isinstance(replies, list) else None
    model = ScriptedModel(
        (lambda _: next(left)) if left else replies,  # type: ignore[arg-type]
        price=PRICE,
    )
    agent = ReactAgent(model, always(tool), **given)
    call = asyncio.run(agent.act(Turn(QUESTION, 1), DirectClient()))
    return call, [prompt.messages[-1].content for prompt in model.calls]


@pytest.mark.slow
def test_after_every_event_used_and_left_are_what_the_tool_counted() -> None:
    rng = np.random.default_rng(0)
    actions = ("Action: search[x]", "Action: search[]", "Action: fly[x]", "Hm.")
    for _ in range(300):
        tool, most = Lookup(), int(rng.integers(0, 6))
        seen: list[tuple[int, ...]] = []

        def reply(prompt: Prompt, tool: Lookup = tool, seen: list[Any] = seen) -> str:
            found = TOLD.search(prompt.messages[-1].content)
            assert found
            seen.append((tool.used, *map(int, found.groups())))
            return str(rng.choice(actions, p=(0.7, 0.1, 0.1, 0.1)))

        given = {"budget": {"search": most}, "tracker": BUDGET_TRACKER, "max_steps": 10}
        call, _ = play(reply, tool, **given)
        assert tool.used == call.tool_calls
        assert tool.used <= most
        assert len(seen) == 10
        for counted, used, left, of in seen:
            assert (used, used + left, of) == (counted, most, most)


def test_a_search_above_the_budget_is_refused_and_the_agent_is_told() -> None:
    tool = Lookup()
    replies = ["Action: search[a]"] * 3 + ["Action: finish[Ada Marek]"]
    call, asked = play(replies, tool, budget={"search": 2})
    assert (tool.used, call.tool_calls, call.answer) == (2, 2, "Ada Marek")
    assert "search was not used: 2 of 2 uses are gone" in asked[3]
    assert not TOLD.search(asked[3])  # nobody tells it more without a tracker


def test_without_a_budget_prompts_are_as_they_were() -> None:
    replies = ["Action: search[a]", "Action: finish[x]"]
    _, plain = play(list(replies), Lookup())
    _, free = play(list(replies), Lookup(), tracker=BUDGET_TRACKER)
    assert plain == free


def test_guidance_narrows_as_the_budget_goes() -> None:
    given = {"budget": {"search": 10}, "tracker": BUDGET_TRACKER, "max_steps": 12}
    _, asked = play(["Action: search[a]"] * 12, Lookup(), **given)
    said = [next(k for k, text in GUIDANCE.items() if text in one) for one in asked]
    assert said == ["high"] * 4 + ["medium"] * 4 + ["low"] * 2 + ["critical"] * 2


def test_money_is_never_exceeded_and_still_brings_an_answer() -> None:
    rng = np.random.default_rng(1)
    answered = 0
    for _ in range(200):
        most = int(rng.integers(0, 3_000_000))
        tool = Lookup("word " * int(rng.integers(1, 400)))

        def reply(prompt: Prompt) -> str:
            last = "This is the last step" in prompt.messages[-1].content
            return "Action: finish[Ada Marek]" if last else "Action: search[a]"

        call, asked = play(reply, tool, budget={"usd": most}, max_tokens=64, max_steps=9)
        assert call.cost_usd is not None
        assert nano_from_usd(call.cost_usd) <= most
        assert (call.answer is not None) == bool(asked)
        answered += call.answer is not None
        if not asked:
            assert call.text == "(The agent's budget allows not even one prompt.)"
    assert answered > 100


def test_tokens_are_never_exceeded() -> None:
    for most in range(0, 9_000, 500):
        call, _ = play(
            lambda _: "Action: search[a]",
            Lookup("word " * 50),
            budget={"tokens": most},
            max_tokens=64,
            max_steps=9,
        )
        assert (call.input_tokens or 0) + (call.output_tokens or 0) <= most


def test_money_needs_a_price() -> None:
    model = OpenAISettings(model="nobody-knows", url="http://localhost:1/v1").open(PriceTable({}))
    agent = ReactAgent(model, always(Lookup()), budget={"usd": 10**9})
    with pytest.raises(UnpricedModelError):
        asyncio.run(agent.act(Turn(QUESTION, 1), DirectClient()))


def test_an_input_that_a_tool_does_not_take_is_used_up() -> None:
    tool = Lookup(failure=BadRequestError("no", cost_nano=7))
    given = {"budget": {"search": 1}, "tracker": BUDGET_TRACKER}
    _, asked = play(["Action: search[a]", "Action: finish[x]"], tool, **given)
    assert "search 1 used, 0 left of 1" in asked[1]


@pytest.mark.parametrize(
    ("replies", "answer", "prompts"),
    [
        (["Action: finish[A]", "SUCCEED"], "A", 2),
        (["Action: finish[A]", "Sure."], "A", 2),
        (["Action: finish[A]", "PIVOT", "Action: finish[B]", "SUCCEED"], "B", 4),
        (["Action: finish[A]", "CONTINUE", "Action: search[x]", "Action: finish[B]"], "B", 5),
        (["Action: finish[A]", "PIVOT", *["Action: search[x]"] * 9], "A", 6),
    ],
)
def test_an_answer_is_verified_pursued_or_dropped(
    replies: list[str], answer: str, prompts: int
) -> None:
    given = {"budget": {"search": 9}, "tracker": BUDGET_TRACKER, "verify": True}
    call, asked = play([*replies, "SUCCEED"], Lookup(), **given)
    assert call.answer == answer
    assert len(asked) == prompts <= 6
    assert "PIVOT if this lead is wrong" in asked[1]
    if "PIVOT" in replies[1]:
        assert "Leave this lead and try another one." in asked[2]


def test_nothing_is_verified_once_the_budget_is_critical() -> None:
    given = {"budget": {"search": 1}, "tracker": BUDGET_TRACKER, "verify": True}
    _, asked = play(["Action: search[a]", "Action: finish[A]"], Lookup(), **given)
    assert len(asked) == 2


def test_the_bound_on_a_call_is_above_what_it_costs_and_within_its_money() -> None:
    def bound(**given: Any) -> int | None:
        agent = ReactAgent(ScriptedModel(lambda _: "x", price=PRICE), always(Lookup()), **given)
        return asyncio.run(cost_bound(agent, Turn(QUESTION, 1)))

    free = bound()
    assert free is not None
    half = bound(budget={"usd": free // 2})
    assert half is not None
    assert 0 < half <= free // 2
    few = bound(budget={"search": 1})
    assert few is not None
    assert few >= free  # unknown actions may take the place of what is refused


def test_what_is_told_and_each_budget_are_part_of_what_traces_are_made_with() -> None:
    def made(**given: Any) -> dict[str, Any]:
        agent = ReactAgent(ScriptedModel(lambda _: "x"), always(), **given)
        return system_of(Dialogue((agent,), 1))["base"].agent

    assert made() == {"max_tokens": 1024, "max_steps": 6}
    assert made(budget={"search": 5}) == made() | {"budget.search": 5}
    told = made(budget={"search": 5}, tracker=BUDGET_TRACKER)
    assert set(told) == set(made()) | {"budget.search", "tracker"}


# Over HTTP, with a search in made-up documents.


@pytest.fixture(scope="module")
def facts() -> LinkedFacts:
    return linked_facts(40, np.random.default_rng(3))


def solving(messages: Messages) -> str:
    """Answer as an agent that follows a chain of facts, and finishes when told to."""
    asked = next(line for line in messages[0]["content"].splitlines() if line.endswith("?"))
    seen = "\n".join(m["content"] for m in messages[1:] if m["role"] == "user")
    answer = extract(asked, seen)
    told = messages[-1]["content"]
    if answer or "answer now" in told or "This is the last step" in told:
        return f"Action: finish[{answer or 'nobody knows'}]"
    queries = [m["content"] for m in messages if m["role"] == "assistant"]
    place = re.search(r"of ([^?]+?)(?: \w+)?\?", asked)
    assert place
    names = re.findall(r"of \w+ is (\w+ \w+)\.|is a byname of (\w+)\.", seen)
    wanted = [place[1], *(one or other for one, other in names)]
    fresh = [name for name in wanted if f"Action: search[{name}]" not in queries]
    return f"Action: search[{fresh[0] if fresh else asked}]"


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with Endpoint(answer=solving) as running:
        yield running


@pytest.mark.parametrize("most", [0, 1, 2, 4])
def test_live_over_http_with_local_search(server: Endpoint, facts: LinkedFacts, most: int) -> None:
    prices = PriceTable({"small": PRICE})
    search = LocalSearch(facts.documents, top=2, cost_nano=5_000)

    async def ask() -> list[Call]:
        model = OpenAISettings(model="small", url=server.url).open(prices)
        agent = ReactAgent(
            model, always(search), budget={"search": most}, tracker=BUDGET_TRACKER, max_steps=8
        )
        try:
            acts = [agent.act(Turn(one, 1), DirectClient()) for one in facts.questions]
            return list(await asyncio.gather(*acts))
        finally:
            await model.aclose()

    server.requests.clear()
    calls = asyncio.run(ask())
    assert all(call.error is None and call.answer for call in calls)
    assert max(call.tool_calls or 0 for call in calls) <= most
    right = [c.answer == q.gold[0] for c, q in zip(calls, facts.questions, strict=True)]
    assert (sum(right) == 0) if most == 0 else (sum(right) > 0)
    for call in calls:
        usage = Usage(call.input_tokens or 0, call.output_tokens or 0)
        assert call.cost_usd is not None
        tokens = nano_from_usd(call.cost_usd) - 5_000 * (call.tool_calls or 0)
        assert tokens == pytest.approx(PRICE.cost_nano(usage, 0.0), abs=8)
    for request in server.requests:
        found = TOLD.search(request["messages"][-1]["content"])
        assert found
        used, left, of = map(int, found.groups())
        assert used + left == of == most


JOB = """
task = "text"
questions = "questions.jsonl"
rounds = 1
[agents.base]
model = "small"
search = "documents.jsonl"
{line}
[agents.guide]
model = "small"
"""


def job(folder: Path, url: str, facts: LinkedFacts, line: str) -> Path:
    documents = [json.dumps({"title": t, "text": x}) for t, x in facts.documents]
    (folder / "documents.jsonl").write_text("\n".join(documents))
    asked = [json.dumps({"id": q.id, "question": q.text, "gold": q.gold}) for q in facts.questions]
    (folder / "questions.jsonl").write_text("\n".join(asked[:6]))
    model = MODEL.format(name="small", url=url, paid=1, earned=2)
    top, _, rest = JOB.format(line=line).partition("[agents.base]")
    (folder / "job.toml").write_text(f"{top}{model}[agents.base]{rest}")
    return folder / "job.toml"


def test_a_job_with_a_budget_is_collected(
    server: Endpoint, facts: LinkedFacts, tmp_path: Path
) -> None:
    line = "budget = { search = 2, tokens = 90000, usd = 0.05 }\ntracker = true\nverify = true"
    path = job(tmp_path, server.url, facts, line)
    assert farthing("collect", path, "--store", tmp_path / "t.db", "--max-cost", "5") == 0
    with Store.open(tmp_path / "t.db") as store:
        traces = list(store.traces())
    bases = [call for trace in traces for call in trace.calls if call.role == "base"]
    assert len(bases) == 6
    for call in bases:
        assert (call.tool_calls or 0) <= 2
        assert "search" in (call.text or "")
        assert call.largest_cost_usd is not None
        assert call.largest_cost_usd <= 0.05
        assert TOLD.search(call.text or "")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("budget = { serch = 2 }", r"base.budget: takes no `serch`; it takes search, tokens and"),
        ("budget = { search = 1.5 }", r"base.budget.search: is 1.5; give a whole number"),
        ("budget = { search = -1 }", r"base.budget"),
        ("tracker = true", r"base.tracker: has nothing to tell; add `budget`"),
    ],
)
def test_a_wrong_budget_is_refused_in_one_line(
    facts: LinkedFacts, tmp_path: Path, line: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as problem:
        read_job(job(tmp_path, "http://localhost:1/v1", facts, line))
    assert "\n" not in str(problem.value)


def test_an_unknown_tracker_is_refused_by_name(
    facts: LinkedFacts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = 'budget = { search = 1 }\ntracker = "trackr"'
    path = job(tmp_path, "http://localhost:1/v1", facts, line)
    assert farthing("collect", path, "--store", tmp_path / "t.db", "--max-cost", "5") == 2
    assert "trackr" in capsys.readouterr().err


def test_completions_are_charged_in_full() -> None:
    done = Completion("Action: finish[A]", "m", "stop", Usage(900, 50), 70, 0.0)
    model = ScriptedModel(lambda _: done)
    agent = ReactAgent(model, always(), budget={"tokens": 10_000}, tracker=BUDGET_TRACKER)
    call = asyncio.run(agent.act(Turn(QUESTION, 1), DirectClient()))
    assert (call.input_tokens, call.output_tokens) == (900, 50)

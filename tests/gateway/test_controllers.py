"""A controller as a policy of a gateway: who answers, what it costs, what ends an episode."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from gateway_running import UPSTREAM, Reply, Running, gateway, serve_section
from serving import marked, recorded, total

from farthing.errors import ConfigError, InputError
from farthing_gateway.config import read_config
from farthing_gateway.open_policies import open_policies
from farthing_gateway.recording.export import as_pool
from farthing_gateway.storage.keys import open_keys
from farthing_gateway.storage.migrations import migrate

PRICE = {"writer": 1, "small": 2, "oracle": 30, "large": 100}
"""USD per million tokens, read or written."""
PRICES = "[prices]\n" + "".join(
    f'"{name}-2026" = {{ input_per_million = {usd}, output_per_million = {usd} }}\n'
    for name, usd in PRICE.items()
)
POOL = """
[pool]
task = "arithmetic"
questions = "questions.jsonl"
controller = "chooses"
most_turns = 3
max_tokens = 40
[modes]
high = 0.01
low = 0.0002
"""
Write = Callable[[list[str]], str]
"""What a controller writes, given what it has been told since the question."""


def asks(expert: str) -> Write:
    """Return a controller that calls an expert, and repeats what it says."""

    def write(told: list[str]) -> str:
        said = re.sub(r"</?reply>", "", told[-1]) if told else ""
        return f"So it is <answer>{said}</answer>" if told else f"hard: <call>{expert}</call>"

    return write


@dataclass
class Provider:
    """A provider of every model; it knows what it may charge for."""

    write: Write = field(default_factory=lambda: asks("oracle"))
    fails: dict[str, int] = field(default_factory=dict)
    """Model to the status that it always fails with."""
    claims: int = 0
    """Tokens that each reply is said to have, where it is not its words."""
    spent: dict[str, int] = field(default_factory=dict)
    """Model to the nano-dollars that its replies cost."""
    prompts: list[str] = field(default_factory=list)
    """What the controller was first told."""

    def __call__(self, body: dict[str, Any]) -> web.Response:
        """Reply to a request."""
        name, messages = body["model"].removesuffix("-2026"), body["messages"]
        if name in self.fails:
            return web.json_response({"error": {"message": "no"}}, status=self.fails[name])
        text = f"{name} says 4"
        if name == "writer":
            begun = next(at for at, one in enumerate(messages) if one["role"] == "user")
            self.prompts.append(" ".join(one["content"] for one in messages[: begun + 1]))
            text = self.write([m["content"] for m in messages[begun + 1 :] if m["role"] == "user"])
        reply = completion(body, text)
        if self.claims:
            reply["usage"] |= {"prompt_tokens": self.claims, "completion_tokens": self.claims}
        self.spent[name] = self.spent.get(name, 0) + reply["usage"]["total_tokens"] * (
            1_000 * PRICE[name]
        )
        return web.json_response(reply)


def config(folder: Path, url: str, extra: str = "", tries: int = 1, **serve: Any) -> str:
    """Return a configuration of one controller, beside its pool."""
    (folder / "questions.jsonl").write_text('{"question": "a=4;a?", "gold": "4"}\n')
    section = UPSTREAM.replace('"{name}-2026"', '"{model}-2026"')
    pool = {"chooses": "writer", "small": "small", "oracle": "oracle"}
    made = [section.format(name=n, model=m, url=url, tries=tries) for n, m in pool.items()]
    (folder / "pool.toml").write_text(POOL + "".join(made) + PRICES)
    own = {"clerk": "writer", "small": "small", "large": "large"}
    text = "".join(section.format(name=n, model=m, url=url, tries=1) for n, m in own.items())
    policy = '[policies.sums]\ncontroller = "pool.toml"\n'
    return serve_section(**serve) + text + PRICES + policy + extra


@contextmanager
def served(
    folder: Path, provider: Provider, extra: str = "", tries: int = 1, **serve: Any
) -> Iterator[tuple[Running, Endpoint]]:
    """Run a gateway of a controller while the block runs."""
    with (
        Endpoint(reply=provider) as stub,
        gateway(folder, config(folder, stub.url, extra, tries, **serve)) as running,
    ):
        yield running, stub


def nano(folder: Path, account: str) -> int:
    return total(str(folder / "gateway.db"), account).settled.nano


def key(folder: Path) -> dict[str, str]:
    """Return the header of a key of a team."""

    async def make() -> str:
        await migrate(str(folder / "gateway.db"))
        keys = await open_keys(str(folder / "gateway.db"))
        try:
            return (await keys.make("ann", "red", ["call"], []))[1]
        finally:
            await keys.aclose()

    return {"Authorization": f"Bearer {asyncio.run(make())}"}


def test_a_controller_answers_and_each_call_is_in_the_ledger(tmp_path: Path) -> None:
    provider, headers = Provider(), key(tmp_path)
    with served(tmp_path, provider, keys=True) as (running, stub):
        reply = running.chat("farthing/sums", "a=4;a?", headers=headers)
    assert reply.status == 200, reply.body
    said = reply.json["farthing"]
    assert reply.json["choices"][0]["message"]["content"] == "oracle says 4"
    assert [one["model"] for one in stub.requests] == ["writer-2026", "oracle-2026", "writer-2026"]
    assert [one["model"] for one in said["calls"]] == ["clerk", "oracle-2026", "clerk"]
    assert (said["answered_by"], said["mode"], said["promise"]) == ("controller", "low", "none")
    how = "in mode low the controller answered in turn 2 of 3"
    assert said["says"] == f"Nothing is promised: {how}."
    assert said["cost_nano"] == sum(provider.spent.values()) > 0
    mark = headers["Authorization"].removeprefix("Bearer ")
    assert mark not in reply.body.decode()
    for account in ("all", "team:red", "policy:sums"):
        assert nano(tmp_path, account) == sum(provider.spent.values())
    assert nano(tmp_path, "model:clerk") == provider.spent["writer"]
    assert nano(tmp_path, "model:oracle-2026") == provider.spent["oracle"]


def test_a_controller_is_streamed_after_its_decision(tmp_path: Path) -> None:
    provider = Provider()
    with served(tmp_path, provider) as (running, _):
        more = {"include_usage": True}
        reply = running.chat("farthing/sums", "a=4;a?", stream=True, stream_options=more)
        events = reply.events
    pieces = [json.loads(one) for one in events[:-1]]
    texts = [one["delta"].get("content") or "" for p in pieces for one in p["choices"]]
    assert "".join(texts) == "oracle says 4"
    assert pieces[-1]["farthing"]["cost_nano"] == nano(tmp_path, "all")


def test_a_request_names_a_mode_and_without_one_the_cheapest_is_told(tmp_path: Path) -> None:
    provider = Provider()
    with served(tmp_path, provider) as (running, _):
        modes = [
            running.chat("farthing/sums", "a=4;a?", farthing=asked).json["farthing"]["mode"]
            for asked in ({}, {"mode": "high"})
        ]
        other = running.chat("farthing/sums", "a=4;a?", farthing={"mode": "huge"})
        listed = {one["id"]: one.get("farthing") for one in running.get("/v1/models").json["data"]}
        ready = running.get("/ready").json
    assert modes == ["low", "high"]
    assert ["budget mode is low" in one for one in provider.prompts] == [True, True, False, False]
    assert other.status == 422
    assert "there are: low, high" in other.json["error"]["message"]
    nothing = {"low": "nothing is promised", "high": "nothing is promised"}
    assert listed["farthing/sums"] == {"kind": "policy", "modes": nothing}
    assert ready["policies"] == {"sums": {"low": None, "high": None}}


def test_where_a_reliability_is_asked_for_the_strongest_answers(tmp_path: Path) -> None:
    with served(tmp_path, Provider()) as (running, _):
        said = running.chat("farthing/sums", "a=4;a?", farthing={"reliability": 0.9}).json
    assert said["farthing"]["answered_by"] == "large"
    assert "nothing here is proved" in said["farthing"]["says"]


@pytest.mark.parametrize("of", ["all", "policy:sums", "model:clerk"])
def test_a_cap_ends_an_episode(tmp_path: Path, of: str) -> None:
    once = f'[[budgets]]\nof = "{of}"\nper = "day"\ncalls = 1\n'
    provider = Provider()
    with served(tmp_path, provider, once) as (running, _):
        refused = running.chat("farthing/sums", "a=4;a?")
    assert refused.status == 402
    assert f"on {of}" in refused.json["error"]["message"]
    assert set(provider.spent) == ({"writer"} if of != "model:clerk" else {"writer", "oracle"})
    assert nano(tmp_path, "all") == sum(provider.spent.values())


def test_a_call_that_the_requests_budget_cannot_pay_is_told_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    def write(told: list[str]) -> str:
        return "<answer>4</answer>" if told else "<call>oracle</call>"

    with served(tmp_path, Provider(write)) as (running, stub):
        said = running.chat("farthing/sums", "a=4;a?", farthing={"budget": 0.003}).json
    assert said["choices"][0]["message"]["content"] == "4"
    assert [one["model"] for one in stub.requests] == ["writer-2026"] * 2
    assert "1 of its calls could not be paid" in said["farthing"]["says"]


def test_a_budget_that_pays_for_nothing_is_402(tmp_path: Path) -> None:
    provider = Provider()
    with served(tmp_path, provider) as (running, stub):
        refused = running.chat("farthing/sums", "a=4;a?", farthing={"budget": 0.000001})
    assert refused.status == 402
    assert refused.json["error"]["code"] == "request_budget_exceeded"
    assert "could not be paid for more than 0 turns of 3" in refused.json["error"]["message"]
    assert not stub.requests


def test_a_budget_that_ends_an_episode_after_a_failure_is_402(tmp_path: Path) -> None:
    provider = Provider(asks("small"), fails={"small": 500}, claims=10**6)
    with served(tmp_path, provider) as (running, stub):
        refused = running.chat("farthing/sums", "a=4;a?", farthing={"budget": 0.002})
    assert refused.status == 402
    assert [one["model"] for one in stub.requests] == ["writer-2026", "small-2026"]


def test_a_call_that_is_cut_off_is_charged_in_full(tmp_path: Path) -> None:
    with served(tmp_path, Provider()) as (running, stub):
        stub.latency_s = 5.0
        late = running.chat("farthing/sums", "a=4;a?", farthing={"deadline": 0.3})
    assert late.status == 504
    (one,) = marked(str(tmp_path / "gateway.db"))
    assert one.amount.nano == nano(tmp_path, "model:clerk") > 0


def many(running: Running, **asked: Any) -> list[Reply]:
    """Ask 50 questions at once."""
    with ThreadPoolExecutor(50) as threads:
        return list(
            threads.map(
                lambda at: running.chat("farthing/sums", f"a={at};a?", farthing=asked), range(50)
            )
        )


@pytest.mark.slow
def test_no_request_of_many_at_once_exceeds_its_budget(tmp_path: Path) -> None:
    provider = Provider(claims=10**6)  # so each call is charged what it can cost at most
    with served(tmp_path, provider) as (running, stub):
        stub.latency_s = 0.05
        free = running.chat("farthing/sums", "a=4;a?").json["farthing"]["cost_nano"]
        budget = free - 1
        refused = many(running, budget=budget / 1e9)
        answered = many(running, budget=(free + 10**6) / 1e9)
    assert {one.status for one in refused} == {402}
    assert {one.status for one in answered} == {200}
    costs = [one.json["farthing"]["cost_nano"] for one in answered]
    assert max(costs) <= free + 10**6
    assert 0 < nano(tmp_path, "all") - free - sum(costs) <= 50 * budget


def test_a_days_money_is_not_exceeded_by_many_at_once(tmp_path: Path) -> None:
    day = '[[budgets]]\nof = "policy:sums"\nper = "day"\nusd = 0.02\n'
    provider = Provider()
    with served(tmp_path, provider, day) as (running, stub):
        stub.latency_s = 0.05
        statuses = {one.status for one in many(running, mode="high")}
    assert statuses == {200, 402}
    assert nano(tmp_path, "policy:sums") == sum(provider.spent.values()) <= 20_000_000


def test_an_expert_that_fails_is_told_to_the_controller(tmp_path: Path) -> None:
    provider = Provider(fails={"oracle": 500})
    with served(tmp_path, provider, "[record]\nshare = 1.0\n") as (running, stub):
        reply = running.chat("farthing/sums", "a=4;a?")
    assert reply.status == 200
    assert "oracle failed" in reply.json["choices"][0]["message"]["content"]
    errors = [one.get("error") for one in reply.json["farthing"]["calls"]]
    assert errors == [None, "connection", None]
    assert len(stub.requests) == 3  # nobody is tried beside a controller, nor audited
    (one,) = recorded(tmp_path)
    assert [(call.round, call.role, call.error is None) for call in one.trace.calls] == [
        (1, "controller", True),
        (1, "oracle", False),
        (2, "controller", True),
    ]
    assert (one.policy, one.mode, one.decided, one.audited) == ("sums", "low", None, False)
    assert one.trace.calls[0].extra["mode_budget_usd"] == 0.0002
    assert as_pool([one]).left_out == 1


def test_a_controller_that_writes_nonsense_gives_no_answer_and_says_so(tmp_path: Path) -> None:
    provider = Provider(lambda _: "<call>nobody</call> <answer>")
    with served(tmp_path, provider) as (running, _):
        whole = running.chat("farthing/sums", "a=4;a?")
        events = running.chat("farthing/sums", "a=4;a?", stream=True).events
    said = whole.json["choices"][0]["message"]
    assert (whole.status, said["content"]) == (200, None)
    assert "in mode low the controller gave no answer in 3 turns" in said["refusal"]
    assert whole.json["farthing"]["cost_nano"] * 2 == nano(tmp_path, "all")
    assert "refusal" in "".join(events)


@pytest.mark.parametrize(("status", "kind"), [(500, "connection"), (401, "authentication")])
@pytest.mark.parametrize("who", ["writer", "oracle"])
def test_a_fallback_stands_in_for_what_ended_an_episode(
    tmp_path: Path, status: int, kind: str, who: str
) -> None:
    standing_in = "[serve.fallbacks]\nclerk = ['large']\nsmall = ['large']\n"
    provider = Provider(asks("small"), fails={who.replace("oracle", "small"): status})
    with served(tmp_path, provider, standing_in + "[record]\nshare = 0.0\n") as (running, _):
        said = running.chat("farthing/sums", "a=4;a?").json["farthing"]
    if who == "oracle" and status == 500:  # the controller hears of it, and goes on
        assert said["answered_by"] == "controller"
        return
    assert said["answered_by"] == "large"
    assert "failed, and its fallback large answered" in said["says"]
    assert [one.get("error") for one in said["calls"]][-2:] == [kind, None]
    (one,) = recorded(tmp_path)
    assert len(one.trace.calls) == len(said["calls"])


@pytest.mark.parametrize(("status", "code"), [(500, "connection"), (401, "authentication")])
def test_where_the_controller_fails_the_client_hears_of_it(
    tmp_path: Path, status: int, code: str
) -> None:
    with served(tmp_path, Provider(fails={"writer": status})) as (running, _):
        refused = running.chat("farthing/sums", "a=4;a?")
    assert refused.status == 502
    assert refused.json["error"]["code"] == f"upstream_{code}"


def test_a_controller_that_fails_again_and_again_is_left_alone(tmp_path: Path) -> None:
    standing_in = "[serve.fallbacks]\nclerk = ['large']\n"
    with served(tmp_path, Provider(fails={"writer": 500}), standing_in) as (running, stub):
        replies = [running.chat("farthing/sums", "a=4;a?").json["farthing"] for _ in range(5)]
    assert [one["answered_by"] for one in replies] == ["large"] * 5
    assert [one["model"] for one in stub.requests].count("writer-2026") == 3
    assert replies[-1]["calls"][0]["error"] == "cooling"


def test_a_controllers_models_are_tried_as_the_gateways_own_are(tmp_path: Path) -> None:
    standing_in = "[serve.fallbacks]\nclerk = ['large']\n"
    provider = Provider(fails={"writer": 500})
    with served(tmp_path, provider, standing_in, tries=6) as (running, stub):
        running.chat("farthing/sums", "a=4;a?")
    assert [one["model"] for one in stub.requests] == ["writer-2026"] * 2 + ["large-2026"]


def test_what_is_outside_the_task_goes_to_the_strongest(tmp_path: Path) -> None:
    with served(tmp_path, Provider(), "answers_for = ['large']\n") as (running, _):
        outside = running.chat("farthing/sums", "Be brief.", "a=4;a?").json["farthing"]
        taken = running.chat("large", "a=4;a?").json["farthing"]
    assert (outside["answered_by"], outside["outside"]) == ("large", "prompt")
    assert taken["answered_by"] == "controller"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("bundle = 'there'", "policies.sums.bundle: means nothing beside a controller"),
        ("task = 'gsm8k'", "policies.sums.task: means nothing"),
        ("pool = ['small']", "give either a pool of models, a job or a controller"),
    ],
)
def test_what_does_not_fit_a_controller_is_refused(tmp_path: Path, more: str, said: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(config(tmp_path, "http://127.0.0.1:9/v1", more))
    with pytest.raises(ConfigError, match=said):
        read_config(file)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("gone.toml", "{folder}/gone.toml: there is no such file"),
        ("three", "the pool is 'three'; give two, four, or a TOML file"),
    ],
)
def test_a_pool_that_is_not_there_is_told(tmp_path: Path, named: str, said: str) -> None:
    file = tmp_path / "serve.toml"
    file.write_text(config(tmp_path, "http://127.0.0.1:9/v1").replace("pool.toml", named))
    read = read_config(file)
    with pytest.raises(InputError, match=re.escape(said.format(folder=tmp_path))):
        open_policies(read, read.models.open())


def shipped(url: str) -> str:
    """Return a configuration of the controller of the pool `two`."""
    section = UPSTREAM.format(name="large", url=url, tries=1)
    return serve_section() + section + PRICES + '[policies.sums]\ncontroller = "two"\n'


def test_a_controller_that_ships_is_served(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, shipped(stub.url)) as running:
        reply = running.chat("farthing/sums", "c=b*7+2;a=4;b=a*3+5;c?")
        no_chain = running.chat("farthing/sums", "a=4")
    assert reply.json["choices"][0]["message"]["content"] == "1"
    assert reply.json["farthing"]["mode"] == "low"
    assert reply.json["farthing"]["cost_nano"] == nano(tmp_path, "policy:sums") > 0
    assert no_chain.status == 422
    assert not stub.requests


OWN = """
[pool]
task = "arithmetic"
questions = "questions.jsonl"
controller = "writer"
style = "compact"
[modes]
low = 0.001
[models.writer]
provider = "embedded"
model = "controller"
[models.small]
provider = "embedded"
model = "small"
"""


def test_what_an_embedded_controller_cannot_read_is_refused(tmp_path: Path) -> None:
    with Endpoint() as stub:
        text = config(tmp_path, stub.url)
        (tmp_path / "pool.toml").write_text(OWN)
        with gateway(tmp_path, text) as running:
            read = running.chat("farthing/sums", "b=a+3;a=4;b?")
            unread = running.chat("farthing/sums", "What is 2 + 2?")
    assert read.json["farthing"]["cost_nano"] == nano(tmp_path, "all") > 0
    assert unread.status == 422
    assert "symbols" in unread.json["error"]["message"]


PROGRAM = """
import asyncio, sys
from pathlib import Path
from farthing_gateway.config import read_config
from farthing_gateway.open_policies import open_policies
from farthing.runtime.meter import Meter
from farthing.tasks.base import Question

config = read_config(Path("serve.toml"))
low = open_policies(config, config.models.open())[0]["sums"].loaded["low"]
question = Question("q", "c=b*7+2;a=4;b=a*3+5;c?")
done = asyncio.run(low.answer(question, budget_nano=None, meter=Meter()))
print(done.best, *sorted({"torch", "transformers"} & sys.modules.keys()))
"""


@pytest.mark.slow
def test_a_controller_that_ships_needs_no_torch(tmp_path: Path) -> None:
    (tmp_path / "serve.toml").write_text(shipped("http://127.0.0.1:9/v1"))
    said = subprocess.check_output([sys.executable, "-c", PROGRAM], cwd=tmp_path, text=True)
    assert said == "1\n"

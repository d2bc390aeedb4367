"""What a bundle's traces were asked with, and requests now: the same, changed, or unknown."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import gateway, models, serve_section
from page_running import Browser, made_key, words

from farthing.bundle import folder as bundles
from farthing.cli.main import _run as farthing
from farthing.models.scripted import ScriptedModel
from farthing.runtime.agents.base import PlainAgent
from farthing.runtime.protocol import Independent
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.numbers import NUMBERS
from farthing.tasks.templates import BUILT_IN

SYSTEM, OTHER = "Work it out.", "Guess."
QUESTIONS, NEW = 300, "What is 901 + 901?"
JOB = """
task = "gsm8k"
questions = "questions.jsonl"
prompts = "prompts"
pool = ["small", "large"]
"""
POLICY = """
[policies.sums]
pool = ["small", "large"]
system = {system}
task = "gsm8k"
max_tokens = 1024
temperature = {temperature}
bundle = {bundle}
"""
UNKNOWN = "Requests are made as the recorded ones were, whose {} not recorded."
NEITHER = UNKNOWN.format("system prompt and parameters were")


def say(messages: list[dict[str, str]]) -> str:
    """Answer as both models do."""
    number = re.search(r"What is (\d+) \+", messages[-1]["content"])
    assert number
    return f"Doubled.\nAnswer: {2 * int(number[1])}"


@pytest.fixture(scope="module")
def server() -> Iterator[Endpoint]:
    with Endpoint(answer=say) as running:
        yield running


def text(at: int) -> str:
    return f"What is {at} + {at}?"


def sold(server: Endpoint) -> str:
    """Return the sections of the models, which are called as in the logs."""
    return models(server.url).replace("-2026", "")


def proved(folder: Path, traces: Path, kind: str = "agreement") -> Path:
    """Prove a promise on traces, and return the bundle."""
    bundle = folder / "bundle"
    asked = ["recommend", "--traces", str(traces), "--promise", kind, "--reference", "large"]
    assert farthing([*asked, "--out", str(bundle)]) == 0
    return bundle


def asked_now(
    folder: Path,
    server: Endpoint,
    bundle: Path,
    system: str = SYSTEM,
    temperature: float = 0,
    **changes: tuple[str, str],
) -> dict[str, Any]:
    """Ask a gateway that serves the bundle one question; return `farthing` and the header."""
    section = POLICY.format(
        system=json.dumps(system), temperature=temperature, bundle=json.dumps(str(bundle))
    )
    config = serve_section() + sold(server) + section
    for before, now in changes.values():
        assert before in config
        config = config.replace(before, now)
    with gateway(folder, config) as running:
        reply = running.chat("farthing/sums", *([system] if system else []), NEW)
    said: dict[str, Any] = reply.json["farthing"]
    assert reply.headers["X-Farthing-Provenance"] == said["provenance"]
    return said


@pytest.fixture(scope="module")
def collected(server: Endpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of traces that `farthing collect` made with a prompt of a plain chat."""
    return _collected(
        server, tmp_path_factory.mktemp("collected"), f"[system]\n{SYSTEM}\n[user]\n{{question}}\n"
    )


def _collected(server: Endpoint, folder: Path, base: str) -> Path:
    (folder / "prompts").mkdir()
    (folder / "prompts" / "base.txt").write_text(base)
    lines = [
        json.dumps({"id": f"q{at}", "question": text(at), "gold": [str(2 * at)]})
        for at in range(QUESTIONS)
    ]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    job, store = folder / "job.toml", folder / "traces.db"
    job.write_text(JOB + sold(server))
    assert farthing(["collect", str(job), "--store", str(store), "--max-cost", "100"]) == 0
    return proved(folder, store)


@pytest.mark.slow
def test_what_was_collected_is_served_with_its_promise_where_it_is_asked_alike(
    tmp_path: Path, server: Endpoint, collected: Path
) -> None:
    recorded = next(one for one in server.requests if one["model"] == "small")
    server.requests.clear()
    said = asked_now(tmp_path, server, collected)
    assert (said["promise"], said["provenance"]) == ("agreement", "same"), said["says"]
    assert said["certificate"]
    (sent,) = server.requests
    assert sent | {"messages": 0} == recorded | {"messages": 0}  # in truth, not by name alone
    assert [one["role"] for one in sent["messages"]] == [
        one["role"] for one in recorded["messages"]
    ]
    assert [one["content"] for one in sent["messages"]] == [SYSTEM, NEW]
    assert recorded["messages"][-1]["content"] in {text(at) for at in range(QUESTIONS)}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"system": OTHER}, "the system prompt of small"),
        ({"temperature": 1}, "temperature of small (1.0 instead of 0"),
        ({"limit": ("max_tokens = 1024", "max_tokens = 2")}, "max_tokens of small (2 instead of"),
        ({"price": ("input_per_million = 1,", "input_per_million = 9,")}, "the price of small's"),
        ({"model": ('model = "small"', 'model = "large"')}, "the model of small (large instead"),
        ({"extra": ("retries", "extra = { top_p = 0.5 }\nretries")}, "top_p of small (0.5 instead"),
        (
            {"task": ('task = "gsm8k"', 'task = "text"')},
            "where the answer of small is read (the whole reply instead of an answer line)",
        ),
    ],
)
def test_what_was_collected_is_served_without_where_it_is_asked_otherwise(
    tmp_path: Path, server: Endpoint, collected: Path, changes: dict[str, Any], why: str
) -> None:
    said = asked_now(tmp_path, server, collected, **changes)
    assert (said["promise"], said["provenance"]) == ("none", "changed")
    assert said["certificate"] is None
    assert why in said["says"]
    assert "ChatAgent" not in said["says"]


@pytest.mark.slow
def test_a_prompt_around_the_question_is_another_than_the_question_alone(
    tmp_path: Path, server: Endpoint
) -> None:
    built_in = BUILT_IN["base"].messages[0][1]
    bundle = _collected(server, tmp_path, built_in)
    said = asked_now(tmp_path, server, bundle, "")
    assert (said["promise"], said["provenance"]) == ("none", "changed")
    assert "what small is sent around the question" in said["says"]


def spent(
    folder: Path, prompts: list[str | None], sent: dict[str, Any] | None, *, before: int = 0
) -> Path:
    """Write LiteLLM's spend log of questions under each of some system prompts in turn."""
    rows = []
    for at in range(QUESTIONS):
        prompt = prompts[at % len(prompts)]
        messages = [{"role": "system", "content": prompt}] if prompt else []
        messages += [
            {"role": ("user", "assistant")[i % 2], "content": "Hm."} for i in range(before)
        ]
        messages.append({"role": "user", "content": text(at)})
        for model in ("small", "large"):
            body = {"messages": messages, "model": model}
            message = {"role": "assistant", "content": f"Answer: {2 * at}"}
            rows.append(
                {
                    "request_id": f"{model} {at}",
                    "call_type": "acompletion",
                    "model": model,
                    "spend": {"small": 3e-5, "large": 3e-4}[model],
                    "prompt_tokens": 20,
                    "completion_tokens": 5,
                    "messages": messages,
                    "proxy_server_request": {} if sent is None else {**body, **sent},
                    "response": {"choices": [{"message": message}]},
                    "status": "success",
                }
            )
    log = folder / "spend.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    store = folder / "log.db"
    imported = ["traces", "import", str(log), "--store", str(store), "--task", "gsm8k"]
    assert farthing(imported) == 0
    return proved(folder, store)


WHOLE = {"temperature": 0.0, "user": "somebody", "stream": False}
"""What clients sent beside messages: no limit, which no reply came near."""


@pytest.mark.slow
def test_a_log_is_served_with_its_promise_under_its_own_system_prompt(
    tmp_path: Path, server: Endpoint
) -> None:
    bundle = spent(tmp_path, [SYSTEM], WHOLE)
    assert not any("not recorded" in one for one in conditions(bundle))
    said = asked_now(tmp_path, server, bundle)
    assert (said["promise"], said["provenance"]) == ("agreement", "same"), said["says"]
    other = asked_now(tmp_path, server, bundle, OTHER)
    assert (other["promise"], other["provenance"]) == ("none", "changed")
    assert "the system prompt of small is not that of the bundle's traces" in other["says"]
    none = asked_now(tmp_path, server, bundle, "")
    assert (none["promise"], none["provenance"]) == ("none", "changed")
    warm = asked_now(tmp_path, server, bundle, temperature=0.5)
    assert "temperature of small (0.5 instead of 0)" in warm["says"]
    short = ("max_tokens = 1024", "max_tokens = 5")
    cut = asked_now(tmp_path, server, bundle, limit=short)
    assert "max_tokens of small (5 instead of nothing)" in cut["says"]


@pytest.mark.slow
def test_a_price_far_from_the_recorded_one_ends_the_promise(
    tmp_path: Path, server: Endpoint
) -> None:
    bundle = spent(tmp_path, [SYSTEM], WHOLE)
    for price, promise in (("0.9", "agreement"), ("100", "none")):
        now = ("input_per_million = 1,", f"input_per_million = {price},")
        said = asked_now(tmp_path, server, bundle, price=now)
        assert said["promise"] == promise, said["says"]
        assert ("a call of small cost $0.00003 in the" in said["says"]) == (promise == "none")


@pytest.mark.slow
def test_what_a_section_adds_and_leaves_out_is_part_of_what_is_sent(
    tmp_path: Path, server: Endpoint
) -> None:
    bundle = spent(tmp_path, [SYSTEM], {**WHOLE, "top_p": 0.5})
    plain = asked_now(tmp_path, server, bundle)
    assert "top_p of small (1 instead of 0.5)" in plain["says"]
    added = ("retries", "extra = { top_p = 0.5 }\nretries")
    said = asked_now(tmp_path, server, bundle, extra=added)
    assert (said["promise"], said["provenance"]) == ("agreement", "same"), said["says"]
    gone = ("retries", 'omit = ["temperature"]\nextra = { top_p = 0.5 }\nretries')
    said = asked_now(tmp_path, server, bundle, extra=gone)
    assert said["promise"] == "none"
    assert "temperature of small (1 instead of 0)" in said["says"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompts", "before", "why"),
    [
        ([SYSTEM, OTHER], 0, "the system prompt of small (one, and 2 were recorded)"),
        ([None], 0, "the system prompt of small"),
        ([SYSTEM], 2, "what small is sent around the question"),
    ],
)
def test_a_log_of_other_prompts_is_served_without(
    tmp_path: Path, server: Endpoint, prompts: list[str | None], before: int, why: str
) -> None:
    said = asked_now(tmp_path, server, spent(tmp_path, prompts, WHOLE, before=before))
    assert (said["promise"], said["provenance"]) == ("none", "changed")
    assert why in said["says"]


@pytest.mark.slow
def test_a_log_without_parameters_is_of_unknown_provenance(
    tmp_path: Path, server: Endpoint
) -> None:
    bundle = spent(tmp_path, [SYSTEM], None)
    assert UNKNOWN.format("parameters were") in conditions(bundle)
    said = asked_now(tmp_path, server, bundle)
    assert (said["promise"], said["provenance"]) == ("agreement", "unknown")
    other = asked_now(tmp_path, server, bundle, OTHER)
    assert (other["promise"], other["provenance"]) == ("none", "changed")


@dataclass(frozen=True)
class Own(PlainAgent):
    """An agent that does not say what it sends."""

    sent = None  # type: ignore[assignment]


@pytest.mark.slow
def test_an_agent_that_does_not_say_what_it_sends_is_not_the_same(tmp_path: Path) -> None:
    bundle = bundles.load(spent(tmp_path, [SYSTEM], WHOLE))
    agents = tuple(Own(ScriptedModel({}, name=name), name) for name in ("small", "large"))
    runner = PolicyRunner(bundle, Independent(agents, 1, NUMBERS), NUMBERS)
    assert (runner.validity.invalid_because, runner.validity.provenance) == ((), "unknown")


def conditions(bundle: Path) -> tuple[str, ...]:
    """Return what a bundle's promise rests on."""
    certificate = bundles.load(bundle).certificate
    assert certificate
    assert certificate.promises
    return certificate.conditional_on


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a bundle of a table without prompts."""
    with (tmp_path / "calls.csv").open("w") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "model", "answer", "cost"])
        for at in range(QUESTIONS):
            rows.writerow([text(at), "small", 2 * at, 1e-5])
            rows.writerow([text(at), "large", 2 * at, 1e-3])
    return proved(tmp_path, tmp_path / "calls.csv")


@pytest.mark.slow
def test_unknown_provenance_is_said_wherever_the_promise_is(
    tmp_path: Path, server: Endpoint, table: Path
) -> None:
    assert NEITHER in conditions(table)
    said = asked_now(tmp_path, server, table)
    assert (said["promise"], said["provenance"]) == ("agreement", "unknown")
    page = shown(tmp_path, server, table)
    told = "unknown: the traces say nothing of their system prompt and parameters"
    assert f"Requests are asked {told}" in page["certificates"]
    assert NEITHER in page["certificates"]
    assert f"whether requests are asked as its traces were is {told}" in page["policies"]


def test_known_provenance_is_said_on_the_page(
    tmp_path: Path, server: Endpoint, collected: Path
) -> None:
    page = shown(tmp_path, server, collected)
    assert "Requests are asked as its traces were" in page["certificates"]
    assert "unknown" not in page["certificates"] + page["policies"]
    again = tmp_path / "again"
    again.mkdir()
    page = shown(again, server, collected, OTHER)
    assert "Requests are asked otherwise than its traces were" in page["certificates"]


def shown(folder: Path, server: Endpoint, bundle: Path, system: str = SYSTEM) -> dict[str, str]:
    """Return what the owner's page says of certificates and policies."""
    section = POLICY.format(
        system=json.dumps(system), temperature=0, bundle=json.dumps(str(bundle))
    )
    owner = made_key(str(folder / "gateway.db"), "owner", "admin")
    with gateway(folder, serve_section(keys=True) + sold(server) + section) as running:
        browser = Browser(running)
        browser.login(owner)
        return {name: words(browser, f"/admin/{name}") for name in ("certificates", "policies")}


@pytest.mark.slow
def test_traffic_of_another_tool_is_told_from_the_collected(
    tmp_path: Path, server: Endpoint, collected: Path
) -> None:
    """A store keeps what its traces were made with; exported as lines they no more say."""
    lines = tmp_path / "lines.jsonl"
    store = str(collected.parent / "traces.db")
    assert farthing(["traces", "export", "--store", store, "--out", str(lines)]) == 0
    bundle = proved(tmp_path, lines)
    assert NEITHER in conditions(bundle)
    assert asked_now(tmp_path, server, bundle, OTHER)["provenance"] == "unknown"
    assert NEITHER not in conditions(collected)

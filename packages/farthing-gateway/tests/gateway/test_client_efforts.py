"""A request that says how long to think passes as it is; others think as the section says."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion

from farthing.models.base import Completion, Message, Prompt
from farthing.models.config import models_from
from farthing.runtime.journal import Attempt
from farthing.runtime.meter import CallBudget, Meter, MeteredClient, QuestionBudget
from farthing_gateway.chat_request import ChatRequest, read_request
from farthing_gateway.request_bounds import WINDOW
from farthing_gateway.stream_bounds import is_silent
from farthing_gateway.task_match import TaskTemplate
from farthing_gateway.upstream import open_upstreams
from farthing_gateway.upstream_base import Bound

HELLO = [{"role": "user", "content": "2 + 2?"}]


def ask(**more: Any) -> ChatRequest:
    return read_request(json.dumps({"model": "base", "messages": HELLO} | more).encode(), {})


def passed(
    endpoint: Endpoint, request: ChatRequest, **section: Any
) -> tuple[dict[str, Any], Bound]:
    """Return what a model is sent of a request, and the most that it can take."""

    async def run() -> Bound:
        own = {"provider": "openai-compatible", "model": "m", "url": endpoint.url} | section
        prices = {"m": {"input_per_million": 1, "output_per_million": 2}}
        models = models_from({"models": {"base": own}, "prices": prices}, "f.toml")
        upstream = open_upstreams(models, {})["base"]
        await upstream.prepare(request, 500).send()
        await upstream.aclose()
        return upstream.prepare(request, 500).bound

    bound = asyncio.run(run())
    return endpoint.requests[-1], bound


def test_the_section_decides_what_a_request_leaves_open(endpoint: Endpoint) -> None:
    section = {"dialect": "openai", "reasoning_effort": "low", "thinking_budget": 2_000}
    sent, bound = passed(endpoint, ask(temperature=0), **section)
    assert (sent["reasoning_effort"], sent["max_tokens"]) == ("low", 2_500)
    assert "temperature" not in sent
    assert bound.nano is not None
    read = bound.tokens - 2_500
    assert bound.nano == read * 1_000 + 2_500 * 2_000
    sent, _ = passed(endpoint, ask(max_tokens=60), **section)
    assert sent["max_tokens"] == 2_060


@pytest.mark.parametrize(
    "own",
    [
        {"reasoning_effort": "high"},
        {"reasoning_effort": "none"},
        {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
        {"extra_body": {"google": {"thinking_config": {"thinking_budget": 9}}}},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ],
)
def test_the_clients_own_choice_passes_as_it_is(endpoint: Endpoint, own: dict[str, Any]) -> None:
    section = {"dialect": "openai", "reasoning_effort": "low"}
    sent, bound = passed(endpoint, ask(max_tokens=60, temperature=0.5, **own), **section)
    assert sent == {"model": "m", "messages": HELLO, "max_tokens": 60, "temperature": 0.5} | own
    assert bound.tokens < 60 + 64 + 8 + len(json.dumps(sent)) + 1
    found = TaskTemplate("", 500, 0.5).mismatch(ask(temperature=0.5, **own))
    assert found is not None
    assert (found.reason, found.near_miss) == ("effort", True)
    assert TaskTemplate("", 500, 0.5).mismatch(ask(temperature=0.5)) is None


def test_objects_of_a_section_are_merged_with_the_clients(endpoint: Endpoint) -> None:
    section = {"dialect": "vllm", "thinking_budget": 100}
    extra = {"chat_template_kwargs": {"tone": "dry", "inner": {"a": 1}}, "stop": ["x"]}
    own = {"chat_template_kwargs": {"name": "me", "tone": "wet", "inner": {"b": 2}}, "stop": ["y"]}
    sent, _ = passed(endpoint, ask(**own), extra=extra, **section)
    assert sent["chat_template_kwargs"] == {
        "name": "me",
        "tone": "dry",
        "inner": {"a": 1, "b": 2},
        "enable_thinking": True,
    }
    assert sent["stop"] == ["x"]


@pytest.mark.parametrize(
    ("own", "beside"),
    [
        ({"enable_thinking": True, "thinking_budget": 1_000}, 1_000),
        ({"enable_thinking": False}, 0),
        ({"enable_thinking": True}, WINDOW),
        # What the provider does not read bounds nothing.
        ({"enable_thinking": True, "reasoning": {"max_tokens": 1}}, WINDOW),
        ({"enable_thinking": True, "reasoning_effort": "none"}, WINDOW),
        ({"thinking": {"budget_tokens": 1}, "thinking_budget": 3_000}, 3_000),
    ],
)
def test_thoughts_that_no_limit_holds_are_reserved(
    endpoint: Endpoint, own: dict[str, Any], beside: int
) -> None:
    _, other = passed(endpoint, ask(max_tokens=60, **own), dialect="openai")
    _, bound = passed(endpoint, ask(max_tokens=60, **own), dialect="qwen")
    assert bound.tokens - other.tokens == beside


def test_thoughts_that_a_section_sends_beside_are_reserved(endpoint: Endpoint) -> None:
    """They are said in `extra`, or the endpoint is one that nobody knows, with Qwen behind it."""
    wanted = {"enable_thinking": True, "thinking_budget": 3_000}
    off = {"enable_thinking": False, "thinking_budget": 3_000}
    for section in ({"dialect": "qwen"}, {}):
        _, bound = passed(endpoint, ask(max_tokens=60), extra=wanted, **section)
        _, other = passed(endpoint, ask(max_tokens=60), extra=off, **section)
        assert bound.tokens - other.tokens == 3_000 - len("false") + len("true")


def test_thoughts_that_nobody_sees_are_not_bounded_by_the_text() -> None:
    assert is_silent({"chat_template_kwargs": {"thinking": True}})
    assert is_silent({"extra_body": {"google": {"thinking_config": {"thinking_level": "low"}}}})
    assert not is_silent({"thinking_budget_tokens": 0, "temperature": 1})


def test_a_policys_call_is_charged_for_all_of_its_thoughts(endpoint: Endpoint) -> None:
    """A reply counts as no more than its call can take, and that holds the thoughts."""

    def thinks(body: dict[str, Any]) -> web.Response:
        said = completion(body, "4")
        said["usage"] = {"prompt_tokens": 9, "completion_tokens": 5_000, "total_tokens": 5_009}
        return web.json_response(said)

    async def run() -> Completion:
        own = {"provider": "openai-compatible", "model": "m", "url": endpoint.url}
        prices = {"m": {"input_per_million": 1, "output_per_million": 2}}
        section = own | {"reasoning_effort": "high", "thinking_budget": 6_000}
        model = models_from({"models": {"base": section}, "prices": prices}, "f.toml").open()[
            "base"
        ]
        budget = CallBudget(QuestionBudget.of(10**9), "base")
        client = MeteredClient(Meter(disputes=True), Attempt("q", 1, "base"), budget)
        try:
            return await client.ask(model, Prompt((Message("user", "2 + 2?"),), max_tokens=100))
        finally:
            await model.aclose()

    endpoint.reply = thinks
    done = asyncio.run(run())
    assert (done.usage.output_tokens, done.cost_nano) == (5_000, 9 * 1_000 + 5_000 * 2_000)

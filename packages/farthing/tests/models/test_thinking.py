"""How long a model thinks: what the providers' own SDKs send, what is sent here, what it costs."""

import asyncio
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion

from farthing.errors import ConfigError, InputError
from farthing.models.any_llm import AnyLLMSettings
from farthing.models.base import Completion, Message, Prompt
from farthing.models.config import ModelsConfig, models_from
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import PriceTable, Rates, TokenPrice
from farthing.models.providers import models_named, settings_of
from farthing.models.thinking import DIALECTS, RESERVED, dialect_of, effort_of
from farthing.runtime.job import sent_mark

SDK = [
    json.loads(line)
    for line in Path(__file__).with_name("sdk_requests.jsonl").read_text().splitlines()
]
"""Requests that the SDKs of OpenAI, Anthropic and Google sent to a server that wrote them down."""
PRICES = PriceTable({"m": TokenPrice((Rates(Decimal(1), Decimal(2)),))})
PROMPT = Prompt((Message("user", "2 + 2?"),), max_tokens=100)
READ = 6 + 64 + 8
"""The most tokens of the prompt: its bytes, and what templates put around."""
PLAIN = {"model", "messages", "max_tokens", "max_completion_tokens", "temperature"}


def sent(endpoint: Endpoint, **section: Any) -> dict[str, Any]:
    """Return the request that a section sends."""
    ask(endpoint, **section)
    return endpoint.requests[-1]


def ask(endpoint: Endpoint, **section: Any) -> Completion:
    async def run() -> Completion:
        model = OpenAISettings(**({"model": "m", "url": endpoint.url} | section)).open(PRICES)
        try:
            return await model.complete(PROMPT)
        finally:
            await model.aclose()

    return asyncio.run(run())


@pytest.mark.parametrize("case", SDK, ids=lambda case: str(case["case"]))
def test_the_efforts_of_every_sdk_are_read(case: dict[str, Any]) -> None:
    assert effort_of(case["body"]) == case["says"]
    assert effort_of({name: case["body"][name] for name in PLAIN & case["body"].keys()}) is None


@pytest.mark.parametrize(
    ("case", "dialect"),
    [
        ("openai chat, reasoning_effort", "openai"),
        ("anthropic's compatible endpoint, extra_body", "anthropic"),
        ("gemini's compatible endpoint, effort", "gemini"),
        ("gemini's compatible endpoint, thinking_config", "gemini"),
        ("deepseek, thinking and effort", "deepseek"),
        ("deepseek, off", "deepseek"),
        ("qwen, thinking_budget", "qwen"),
        ("qwen, off", "qwen"),
        ("openrouter, effort", "openrouter"),
        ("openrouter, max_tokens", "openrouter"),
        ("vllm, thinking_token_budget", "vllm"),
        ("vllm, off", "vllm"),
        ("llama.cpp, thinking_budget_tokens", "llama.cpp"),
    ],
)
def test_a_section_sends_what_the_sdk_of_its_provider_does(
    endpoint: Endpoint, case: str, dialect: str
) -> None:
    (recorded,) = (one for one in SDK if one["case"] == case)
    says = recorded["says"]
    field = {"thinking_budget": int(says)} if says.isdecimal() else {"reasoning_effort": says}
    ours = sent(endpoint, dialect=dialect, **field)
    theirs = {name: v for name, v in recorded["body"].items() if name not in PLAIN}
    assert {name: v for name, v in ours.items() if name not in PLAIN} == theirs
    thoughts = {"none": 0, "2048": 2048}.get(says, RESERVED)
    assert ours["max_tokens"] == PROMPT.max_tokens + thoughts


def test_what_a_model_that_thinks_refuses_is_left_out(endpoint: Endpoint) -> None:
    assert "temperature" not in sent(endpoint, dialect="openai", reasoning_effort="low")
    assert "temperature" not in sent(endpoint, dialect="anthropic", thinking_budget=1024)
    assert sent(endpoint, dialect="openai", reasoning_effort="none")["temperature"] == 0.0
    assert sent(endpoint, dialect="openai")["temperature"] == 0.0
    assert sent(endpoint, reasoning_effort="low")["temperature"] == 0.0  # who knows whose it is
    assert AnyLLMSettings(
        model="m", vendor="anthropic", reasoning_effort="low"
    ).left_out == frozenset({"temperature", "top_p"})


def test_what_a_section_adds_leaves_its_effort_as_it_is(endpoint: Endpoint) -> None:
    more = {"chat_template_kwargs": {"tone": "dry"}}
    said = sent(endpoint, dialect="vllm", thinking_budget=100, extra=more)
    assert said["chat_template_kwargs"] == {"enable_thinking": True, "tone": "dry"}


@pytest.mark.parametrize(
    ("url", "dialect"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://me.openai.azure.com/openai/v1", "openai"),
        ("https://api.anthropic.com/v1", "anthropic"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini"),
        ("https://api.deepseek.com/v1", "deepseek"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("https://openrouter.ai/api/v1", "openrouter"),
    ],
)
def test_an_address_tells_how_it_is_written(url: str, dialect: Any) -> None:
    assert dialect_of(url) is DIALECTS[dialect]
    assert dialect_of(url.replace(".", "-", 3)) is not DIALECTS[dialect]


@pytest.mark.parametrize(
    ("section", "most"),
    [
        ({}, 100),
        ({"dialect": "openai", "reasoning_effort": "low"}, 100 + 25_000),
        ({"dialect": "openai", "reasoning_effort": "low", "thinking_budget": 900}, 1_000),
        ({"dialect": "openai", "reasoning_effort": "none"}, 100),
        ({"dialect": "anthropic", "thinking_budget": 2_048}, 2_148),
        ({"dialect": "vllm", "thinking_budget": 0}, 100),
        ({"dialect": "qwen", "thinking_budget": 2_048}, 100 + 2 * 2_048),  # may come beside
        ({"dialect": "qwen", "extra": {"thinking_budget": 2_048}}, 2_148),
        ({"dialect": "qwen", "extra": {"enable_thinking": True}}, 25_100),
        ({"extra": {"thinking_budget": 2_048}}, 2_148),
    ],
)
def test_the_dearest_call_has_all_thoughts_that_the_limits_allow(
    section: dict[str, Any], most: int
) -> None:
    model = OpenAISettings(model="m", url="http://localhost:1/v1", **section).open(PRICES)
    assert model.largest_cost_nano(PROMPT) == READ * 1_000 + most * 2_000
    opened = ModelsConfig.open(
        models_from(
            {
                "models": {
                    "base": {
                        "provider": "openai-compatible",
                        "model": "m",
                        "url": "http://localhost:1/v1",
                        "limits": "l",
                    }
                    | section
                },
                "limits": {"l": {"concurrent": 1}},
                "prices": {"m": {"input_per_million": 1, "output_per_million": 2}},
            },
            "f.toml",
        )
    )["base"]
    assert opened.largest_cost_nano(PROMPT) == READ * 1_000 + most * 2_000
    assert getattr(opened, "longest")(PROMPT).max_tokens == most  # noqa: B009 - no protocol's


@pytest.mark.parametrize(
    ("usage", "written", "thoughts"),
    [
        # OpenAI, DeepSeek, Qwen: thoughts are part of the completion.
        ((75, 1_186, 1_261, 1_024), 1_186, 1_024),
        # xAI, from its documentation: 32 + 9 + 94 = 135.
        ((32, 9, 135, 94), 103, 94),
        ((279, 100, 468, 89), 189, 89),
        # Gemini, measured by others: completion 151 of 553, 382 of them thoughts.
        ((20, 151, 553, None), 533, None),
        ((8, 1, None, 90), 91, 90),
        ((8, 4, None, None), 4, None),
    ],
)
def test_thoughts_are_paid_for_however_a_provider_counts_them(
    endpoint: Endpoint,
    usage: tuple[int, int, int | None, int | None],
    written: int,
    thoughts: int | None,
) -> None:
    read, completed, total, reasoning = usage

    def reply(body: dict[str, Any]) -> web.Response:
        said = completion(body, "4")
        said["usage"] = {
            "prompt_tokens": read,
            "completion_tokens": completed,
            "total_tokens": total,
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }
        return web.json_response(said)

    endpoint.reply = reply
    done = ask(endpoint, dialect="openai", reasoning_effort="high")
    assert (done.usage.output_tokens, done.usage.reasoning_tokens) == (written, thoughts)
    assert done.cost_nano == read * 1_000 + written * 2_000


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"dialect": "anthropic", "reasoning_effort": "low"}, "give `thinking_budget`"),
        ({"dialect": "qwen", "reasoning_effort": "low"}, "give `thinking_budget`"),
        ({"thinking_budget": 100}, "give `dialect` (openai, anthropic,"),
        ({"thinking_budget": -1}, "at least 0"),
        ({"dialect": "vlm"}, "write openai or anthropic"),
    ],
)
def test_what_a_provider_does_not_have_is_refused(section: dict[str, Any], says: str) -> None:
    own = {"provider": "openai-compatible", "model": "m", "url": "http://localhost:1/v1"}
    with pytest.raises(ConfigError) as refused:
        models_from({"models": {"base": own | section}}, "job.toml")
    assert str(refused.value).startswith("job.toml, models.base")
    assert says in str(refused.value)


@pytest.mark.parametrize("named", [{"thinking_budget": 100}, {}])
def test_a_budget_behind_any_llm_is_refused_with_what_helps(named: dict[str, int]) -> None:
    own = {"provider": "any-llm", "model": "m", "vendor": "anthropic"} | named
    with pytest.raises(ConfigError) as refused:
        models_from({"models": {"base": own}}, "job.toml").with_efforts(["base@100"])
    said = str(refused.value)
    assert "give `reasoning_effort`, of which any-llm makes a budget" in said
    assert "give `dialect`" not in said
    beside = AnyLLMSettings(model="m", vendor="a", reasoning_effort="low", thinking_budget=9)
    assert beside.thinking.tokens == 9


def test_a_name_with_an_effort_is_a_section_of_its_own() -> None:
    own = {"provider": "openai-compatible", "model": "m", "url": "https://api.openai.com/v1"}
    tables = {"models": {"o4": own, "one": {"provider": "scripted"}, "o4@low": own}}
    found = models_from(tables, "job.toml").with_efforts(["o4@high", "o4@2048", "o4@low", "x@low"])
    efforts = {
        name: getattr(one.settings, "reasoning_effort", 0) for name, one in found.sections.items()
    }
    assert list(efforts) == ["o4", "one", "o4@low", "o4@high", "o4@2048"]
    assert list(efforts.values()) == [None, 0, None, "high", None]
    settings = found.sections["o4@2048"].settings
    assert isinstance(settings, OpenAISettings)
    assert settings.thinking.tokens == 2_048
    with pytest.raises(ConfigError, match=r"job.toml, models.one@low: has no efforts"):
        found.with_efforts(["one@low"])


def test_models_by_name_take_an_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings_of("openai/o4-mini@low").reasoning_effort == "low"
    assert settings_of("anthropic/claude-sonnet-4-5@2048").thinking_budget == 2_048
    assert settings_of("http://localhost:8000/v1#llama@20240229").model == "llama@20240229"
    with pytest.raises(InputError, match=r"claude-sonnet-4-5@low: `reasoning_effort` is not known"):
        settings_of("anthropic/claude-sonnet-4-5@low")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    names = ["openai/o4-mini@low", "openai/o4-mini@high", "openai/o4-mini"]
    found = models_named(names, PRICES.own)
    assert list(found.sections) == ["o4-mini@low", "o4-mini@high", "o4-mini"]
    with pytest.raises(InputError, match="o4-mini@low: is named twice"):
        models_named([*names, "o4-mini@low"], PRICES.own)


def test_sections_without_an_effort_keep_what_was_paid_for_them() -> None:
    """The mark is part of the key of every reply in a journal."""
    section = {
        "provider": "openai-compatible",
        "model": "gpt-4o-mini",
        "url": "https://api.openai.com/v1",
        "extra": {"reasoning_effort": "low"},
        "omit": ["temperature"],
    }
    models = models_from({"models": {"a": section}}, "job.toml").with_efforts(["a@low"])
    assert sent_mark(models, "a") == "1f1141346599dcb7"
    assert sent_mark(models, "a@low") != sent_mark(models, "a")

"""Models by name alone, and as many calls at once as an endpoint takes."""

import asyncio

import pytest

from farthing.errors import InputError, RateLimitError, UnknownNameError
from farthing.models.adaptive import Gate, Noticed
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.prices import FREE, list_price
from farthing.models.providers import cheaper_models, hosts, models_named, settings_of
from farthing.models.scripted import ScriptedModel


def test_a_name_says_where_its_model_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "secret")
    found = settings_of("google/gemini-2.0-flash")
    assert (found.model, found.key_env) == ("gemini-2.0-flash", "GOOGLE_API_KEY")
    assert found.url.startswith("https://generativelanguage.googleapis.com/")
    assert settings_of("gpt-4o").url == "https://api.openai.com/v1"
    own = settings_of("http://localhost:8000/v1#org/llama")
    assert (own.model, own.url, own.key_env) == ("org/llama", "http://localhost:8000/v1", None)


def test_an_unknown_name_gets_the_nearest_three() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'openai/gpt-4\.1-nano'") as refused:
        settings_of("gpt-4.1-nanno")
    assert str(refused.value).partition("Nearest of")[2].count(",") == 2


def test_a_missing_key_is_named_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    with pytest.raises(InputError, match="export MISTRAL_API_KEY"):
        models_named(["mistral/mistral-small-latest"], {})
    with pytest.raises(InputError, match=r"says no model; write http://x/v1#MODEL"):
        settings_of("http://x/v1")


def test_hosts_are_those_that_receive_texts() -> None:
    free = dict.fromkeys("mno", FREE)
    config = models_named(["http://a:1/v1#m", "http://a:1/v1#n", "http://b/v1#o"], free)
    assert hosts(config) == ["a:1", "b"]
    with pytest.raises(InputError, match="named twice"):
        models_named(["http://a:1/v1#m", "http://b/v1#m"], free)
    with pytest.raises(InputError, match="give --price p=IN,OUT"):
        models_named(["http://a:1/v1#p"], free)


def test_cheaper_models_cost_less_than_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    today = list_price("gpt-4o")
    found = cheaper_models(today, (300, 10))
    assert found[0].startswith("openai/"), "one whose key is at hand comes first"
    assert today is not None
    for name in found:
        settings = settings_of(name)
        price = list_price(settings.model, settings.price_provider)
        assert price is not None
        usage = Usage(300, 10)
        assert price.cost_nano(usage, 1) <= today.cost_nano(usage, 1) / 2
    assert cheaper_models(list_price("llama-3.1-8b-instant", "groq"), (300, 10)) == []


def test_a_gate_opens_while_all_goes_well_and_halves_once_where_calls_are_refused() -> None:
    limit, under_way, most, refused = 20, 0, 0, 0

    async def answer() -> None:
        nonlocal under_way, most, refused
        async with gate:
            under_way += 1
            most = max(most, under_way)
            try:
                await model.complete(Prompt((Message("user", "?"),)))
            except RateLimitError:
                refused += 1
            finally:
                under_way -= 1

    class Endpoint(ScriptedModel):
        async def complete(self, prompt: Prompt) -> Completion:
            over = under_way > limit
            await asyncio.sleep(0.001)
            if over:
                raise RateLimitError("too many")
            return Completion("4", "m", "stop", Usage(1, 1), 0, 0.0)

    async def many() -> None:
        await asyncio.gather(*(answer() for _ in range(2_000)))

    gate = Gate(most=1_000)
    model = Noticed(Endpoint({}), gate)
    asyncio.run(many())
    assert limit < most <= 4 * limit
    assert 0 < refused < 400, "a fifth at most, of an endpoint that takes 20"
    assert gate.allowed <= 2 * limit


def test_a_gate_that_is_always_refused_ends_at_one() -> None:
    gate = Gate(most=1_000)
    for _ in range(100):
        gate.refused()
    assert gate.allowed == 1

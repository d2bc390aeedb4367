"""What goes to the library and comes back: with a stand-in, and with the library if it is there."""

import asyncio
import json
import sys
from decimal import Decimal
from types import ModuleType
from typing import Any, ClassVar

import pytest
from chat_server import Endpoint, completion

from farthing.errors import (
    AuthenticationError,
    BadRequestError,
    ContentRefusedError,
    ContextTooLongError,
    InputError,
    MalformedReplyError,
    ModelConnectionError,
    ModelError,
    ModelTimeoutError,
    RateLimitError,
)
from farthing.models.any_llm import AnyLLMModel, AnyLLMSettings
from farthing.models.base import Completion, Message, Prompt, Usage
from farthing.models.prices import FREE, PriceTable, SecondPrice

PROMPT = Prompt((Message("user", "hello there"),), max_tokens=50, stop=("END",), top_logprobs=2)
PRICES = PriceTable({"m": FREE})
SECRET = "sk-very-secret"


class AnyLLMError(Exception):
    def __init__(self, text: str, status: int | None = None, after: str | None = None) -> None:
        super().__init__(text)
        self.status_code, self.retry_after = status, after


class NoSuchParameterError(AnyLLMError):
    pass


class Reply:
    def __init__(self, body: bytes) -> None:
        self.body = body

    def model_dump_json(self) -> str:
        return self.body.decode()


class Client:
    """Stands in for the library's client of one vendor."""

    created: ClassVar[list[dict[str, Any]]] = []
    outcome: ClassVar[Any] = None
    seen: ClassVar[dict[str, Any]] = {}
    retries: ClassVar[bool] = True

    @classmethod
    def create(cls, vendor: str, **access: Any) -> "Client":
        if vendor == "nobody":
            raise error("UnsupportedProviderError")("unknown vendor")
        if "max_retries" in access and not cls.retries:
            raise NoSuchParameterError("max_retries")
        cls.created.append({"vendor": vendor} | access)
        return cls()

    async def acompletion(self, **wanted: Any) -> Any:
        Client.seen = wanted
        if isinstance(self.outcome, Exception):
            raise self.outcome
        if self.outcome is None:
            await asyncio.sleep(10)
        return self.outcome


def error(name: str) -> type[AnyLLMError]:
    return type(name, (AnyLLMError,), {})


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("any_llm")
    parts = {
        "AnyLLM": Client,
        "AnyLLMError": AnyLLMError,
        "UnsupportedParameterError": NoSuchParameterError,
    }
    vars(module).update(parts)
    monkeypatch.setitem(sys.modules, "any_llm", module)
    monkeypatch.setenv("A_KEY", SECRET)
    monkeypatch.setattr(Client, "created", [])
    monkeypatch.setattr(Client, "retries", True)
    return module


def model(**more: Any) -> AnyLLMModel:
    wanted = {"vendor": "anthropic", "model": "m", "key_env": "A_KEY"} | more
    return AnyLLMSettings(**wanted).open(PRICES)


def ask(outcome: Any, **more: Any) -> Completion:
    Client.outcome = outcome
    return asyncio.run(model(**more).complete(PROMPT))


def test_a_reply_is_read_and_the_library_does_not_retry(library: ModuleType) -> None:
    body = completion({"model": "m-2026", "messages": [{"content": "a b"}]}, "yes sir")
    done = ask(Reply(json.dumps(body).encode()), omit=["temperature"], extra={"user": "me"})
    assert (done.text, done.model, done.usage) == ("yes sir", "m-2026", Usage(2, 2))
    assert Client.seen == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello there"}],
        "max_tokens": 50,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 2,
        "user": "me",
    }
    assert Client.created == [
        {
            "vendor": "anthropic",
            "api_key": SECRET,
            "api_base": None,
            "unified_exceptions": True,
            "max_retries": 0,
        }
    ]


def test_a_vendor_without_retries_is_not_told_to_make_none(library: ModuleType) -> None:
    Client.retries = False
    model()
    assert "max_retries" not in Client.created[0]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (AnyLLMError("no", 401), AuthenticationError),
        (AnyLLMError("no", 429, "7"), RateLimitError),
        (AnyLLMError("no", 500), ModelConnectionError),
        (error("ContextLengthExceededError")("too long"), ContextTooLongError),
        (error("ContentFilterError")("no"), ContentRefusedError),
        (error("ModelNotFoundError")("no"), BadRequestError),
        (error("ProviderError")("broken pipe"), ModelConnectionError),
        (None, ModelTimeoutError),
        (Reply(b"{}"), MalformedReplyError),
    ],
)
def test_failures_are_typed_and_show_no_key(
    library: ModuleType, outcome: Any, kind: type[ModelError]
) -> None:
    if isinstance(outcome, AnyLLMError):
        outcome.args = (f"{outcome.args[0]} {SECRET}",)
    with pytest.raises(ModelError) as caught:
        ask(outcome, timeout_s=0.05 if outcome is None else 30.0)
    assert type(caught.value) is kind
    assert caught.value.__context__ is None
    assert SECRET not in f"{caught.value} {caught.value!r} {model()!r}"
    if kind is RateLimitError:
        assert caught.value.retry_after_s == 7


def test_an_unknown_outcome_counts_in_full(library: ModuleType) -> None:
    prices = PriceTable({"m": SecondPrice(Decimal(1))})
    Client.outcome = error("ProviderError")("broken pipe")
    settings = AnyLLMSettings(vendor="anthropic", model="m", timeout_s=3)
    with pytest.raises(ModelConnectionError) as caught:
        asyncio.run(settings.open(prices).complete(PROMPT))
    assert caught.value.cost_nano == 3_000_000_000


def test_a_vendor_that_nobody_knows_is_the_users_error(library: ModuleType) -> None:
    with pytest.raises(InputError, match="model 'm' of nobody cannot be used: unknown vendor"):
        model(vendor="nobody")


@pytest.mark.extras("any_llm", "openai")
def test_the_library_itself(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", SECRET)
    asked = AnyLLMSettings(vendor="openai", model="m", url=endpoint.url, key_env="A_KEY")

    async def twice() -> Completion:
        whole = asked.open(PRICES)
        try:
            done = await whole.complete(PROMPT)
            endpoint.faults = {"500": 1.0}
            with pytest.raises(ModelConnectionError):
                await whole.complete(PROMPT)
            return done
        finally:
            await whole.aclose()

    done = asyncio.run(twice())
    assert done.text == "reply to hello there"
    assert done.usage == Usage(2, 4)
    assert len(done.logprobs) == 4
    assert sum(endpoint.calls.values()) == 2

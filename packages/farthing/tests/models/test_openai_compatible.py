"""Against a server over a real socket: what is sent, what is read, and how each failure ends."""

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web
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
    RedirectedError,
    UnpricedModelError,
)
from farthing.models.base import Completion, Message, Prompt, TokenLogprob, Usage
from farthing.models.openai_compatible import OpenAICompatibleModel, OpenAISettings
from farthing.models.prices import PriceTable, Rates, TokenPrice

SECRET = "sk-very-secret-0123456789"
PRICES = PriceTable({"m": TokenPrice((Rates(Decimal(1), Decimal(2)),))})
HELLO = Prompt((Message("system", "Be brief."), Message("user", "Hello there")), max_tokens=50)
T = TypeVar("T")


def using(settings: OpenAISettings, work: Callable[[OpenAICompatibleModel], Awaitable[T]]) -> T:
    async def run() -> T:
        model = settings.open(PRICES)
        try:
            return await work(model)
        finally:
            await model.aclose()

    return asyncio.run(run())


def ask(url: str, prompt: Prompt = HELLO, **settings: Any) -> Completion:
    wanted = OpenAISettings(**({"model": "m", "url": url} | settings))
    return using(wanted, lambda model: model.complete(prompt))


def test_a_completion_is_read_and_priced(endpoint: Endpoint) -> None:
    done = ask(endpoint.url)
    assert done.text == "reply to Hello there"
    assert (done.model, done.finish, done.tries) == ("m", "stop", 1)
    assert done.usage == Usage(4, 4)
    assert done.cost_nano == 4 * 1_000 + 4 * 2_000
    assert 0 < done.latency_s < 5
    assert done.logprobs == ()


def test_what_is_asked_for_is_sent_and_nothing_else(endpoint: Endpoint) -> None:
    ask(endpoint.url)
    prompt = Prompt(
        HELLO.messages,
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        stop=("END",),
        top_logprobs=2,
        seed=3,
    )
    ask(
        endpoint.url + "/",
        prompt,
        limit_name="max_completion_tokens",
        omit=["temperature"],
        extra={"reasoning_effort": "low"},
    )
    plain, full = endpoint.requests
    assert plain == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello there"},
        ],
        "max_tokens": 50,
        "temperature": 0.0,
    }
    assert full == {
        "model": "m",
        "messages": plain["messages"],
        "max_completion_tokens": 7,
        "top_p": 0.9,
        "stop": ["END"],
        "logprobs": True,
        "top_logprobs": 2,
        "seed": 3,
        "reasoning_effort": "low",
    }


def test_log_probabilities_are_read(endpoint: Endpoint) -> None:
    done = ask(endpoint.url, Prompt(HELLO.messages, top_logprobs=2))
    assert done.logprobs[0] == TokenLogprob("reply", -0.25, (("reply", -0.25), ("other", -1.75)))
    assert "".join(t.token for t in done.logprobs) == "replytoHellothere"


@pytest.mark.parametrize(
    ("said", "finish"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "refused"), ("eos", "other")],
)
def test_finish_reasons(endpoint: Endpoint, said: str, finish: str) -> None:
    def reply(body: dict[str, Any]) -> web.Response:
        whole = completion(body, "some")
        whole["choices"][0]["finish_reason"] = said
        return web.json_response(whole)

    endpoint.reply = reply
    assert ask(endpoint.url).finish == finish


def test_a_refusal_is_a_completion_that_was_paid_for(endpoint: Endpoint) -> None:
    def reply(body: dict[str, Any]) -> web.Response:
        whole = completion(body, "")
        whole["choices"][0]["message"] = {"content": None, "refusal": "I will not."}
        return web.json_response(whole)

    endpoint.reply = reply
    done = ask(endpoint.url)
    assert (done.text, done.finish, done.cost_nano) == ("I will not.", "refused", 4_000)


def test_missing_usage_counts_as_the_largest_there_can_be(endpoint: Endpoint) -> None:
    endpoint.faults = {"no usage": 1.0}
    done = ask(endpoint.url)
    assert done.usage == Usage(len("Be brief.Hello there") + 2 * 8 + 64, 50, estimated=True)
    assert done.cost_nano == using(settings(endpoint), _largest)


async def _largest(model: OpenAICompatibleModel) -> int:
    return model.largest_cost_nano(HELLO)


def settings(endpoint: Endpoint, **more: Any) -> OpenAISettings:
    return OpenAISettings(**({"model": "m", "url": endpoint.url} | more))


@pytest.mark.parametrize(
    ("status", "body", "kind", "cost"),
    [
        (400, "unknown parameter", BadRequestError, 0),
        (400, '{"error": {"code": "context_length_exceeded"}}', ContextTooLongError, 0),
        (400, "This model's maximum context length is 4096 tokens.", ContextTooLongError, 0),
        (400, '{"error": {"type": "exceed_context_size_error"}}', ContextTooLongError, 0),
        (400, '{"error": {"code": "content_filter"}}', ContentRefusedError, 0),
        (301, "moved", RedirectedError, 0),
        (401, "who are you", AuthenticationError, 0),
        (402, "no credit", AuthenticationError, 0),
        (403, "not you", AuthenticationError, 0),
        (404, "no such model", BadRequestError, 0),
        (408, "too slow", ModelTimeoutError, None),
        (409, "conflict", ModelConnectionError, 0),
        (413, "too much", ContextTooLongError, 0),
        (422, "what", BadRequestError, 0),
        (429, "slow down", RateLimitError, 0),
        (429, '{"error": {"code": "insufficient_quota"}}', AuthenticationError, 0),
        (500, "it broke", ModelConnectionError, 0),
        (503, "overloaded", ModelConnectionError, 0),
        (504, "upstream", ModelTimeoutError, None),
        (529, "overloaded", ModelConnectionError, 0),
    ],
)
def test_an_error_status_becomes_its_error(
    endpoint: Endpoint, status: int, body: str, kind: type[ModelError], cost: int | None
) -> None:
    endpoint.reply = lambda _: web.Response(status=status, text=body)
    with pytest.raises(ModelError) as caught:
        ask(endpoint.url)
    assert type(caught.value) is kind
    largest = using(settings(endpoint), _largest)
    assert caught.value.cost_nano == (largest if cost is None else cost)
    assert f"HTTP {status}" in str(caught.value)
    assert body in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("reset", ModelConnectionError),
        ("cut", ModelConnectionError),
        ("slow", ModelTimeoutError),
        ("garbage", MalformedReplyError),
        ("content type", MalformedReplyError),
    ],
)
def test_a_call_of_unknown_outcome_counts_in_full(
    endpoint: Endpoint, fault: str, kind: type[ModelError]
) -> None:
    endpoint.faults = {fault: 1.0}
    timeout_s = 0.3 if fault == "slow" else 20.0
    with pytest.raises(kind) as caught:
        ask(endpoint.url, timeout_s=timeout_s)
    assert caught.value.retriable
    assert caught.value.cost_nano == using(settings(endpoint), _largest)


@pytest.mark.parametrize("body", ["{}", '{"choices": []}', '{"choices": [{}]}', "[]", "", "null"])
def test_json_of_another_shape_is_malformed(endpoint: Endpoint, body: str) -> None:
    endpoint.reply = lambda _: web.Response(text=body, content_type="application/json")
    with pytest.raises(MalformedReplyError, match="cannot be read"):
        ask(endpoint.url)


def test_a_redirect_is_not_followed(endpoint: Endpoint) -> None:
    there = {"Location": endpoint.url + "/chat/completions"}
    endpoint.reply = lambda _: web.Response(status=307, headers=there)
    with pytest.raises(RedirectedError, match=r"HTTP 307.*correct the model's url"):
        ask(endpoint.url)
    assert sum(endpoint.calls.values()) == 1


def test_nobody_there_costs_nothing() -> None:
    with pytest.raises(ModelConnectionError, match="is it running") as caught:
        ask("http://127.0.0.1:1/v1")
    assert caught.value.cost_nano == 0


def test_cancelling_closes_the_connection(endpoint: Endpoint) -> None:
    endpoint.latency_s = 30.0

    async def cancel(model: OpenAICompatibleModel) -> None:
        task = asyncio.create_task(model.complete(HELLO))
        while not endpoint.under_way:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(200):
            if endpoint.disconnects:
                break
            await asyncio.sleep(0.01)

    using(settings(endpoint), cancel)
    assert endpoint.disconnects == 1
    assert endpoint.under_way == 0


def test_an_unpriced_model_answers_and_has_no_largest_cost(endpoint: Endpoint) -> None:
    done = ask(endpoint.url, model="mystery")
    assert done.cost_nano is None
    with pytest.raises(UnpricedModelError, match=r'"mystery" = \{'):
        using(settings(endpoint, model="mystery"), _largest)
    endpoint.faults = {"cut": 1.0}
    with pytest.raises(ModelConnectionError) as caught:
        ask(endpoint.url, model="mystery")
    assert caught.value.cost_nano is None


def test_the_key_is_sent_and_never_shown(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_KEY", SECRET)
    file = tmp_path / "key"
    file.write_text(SECRET + "\n")
    shown = [repr(settings(endpoint, key_env="A_KEY").open(PRICES))]
    places: tuple[dict[str, Any], ...] = ({"key_env": "A_KEY"}, {"key_file": str(file)})
    for place in places:
        ask(endpoint.url, **place)
    assert [h["Authorization"] for h in endpoint.headers] == [f"Bearer {SECRET}"] * 2
    replies = [
        web.Response(status=401, text=f"no such key: {SECRET}"),
        web.Response(status=500, text=f"Authorization: Bearer {SECRET}"),
        web.Response(status=302, headers={"Location": endpoint.url + "/chat/completions"}),
        web.Response(text=f"<p>{SECRET}", content_type="text/html"),
        web.Response(text=f'{{"choices": "{SECRET}"}}', content_type="application/json"),
    ]
    for reply in replies:
        endpoint.reply = lambda _, reply=reply: reply
        shown.append(everything(endpoint, "A_KEY"))
    endpoint.reply = None
    for fault in ("reset", "cut", "slow", "garbage", "content type", "429", "500"):
        endpoint.faults = {fault: 1.0}
        shown.append(everything(endpoint, "A_KEY"))
    assert len(shown) == 13
    assert all(shown)
    assert SECRET not in "".join(shown)


def everything(endpoint: Endpoint, variable: str) -> str:
    """Return whatever a failed call can show: text, repr, traceback, the errors behind it."""
    with pytest.raises(ModelError) as caught:
        ask(endpoint.url, key_env=variable, timeout_s=0.2)
    shown, error = "", caught.value.with_traceback(None)
    behind: BaseException | None = error
    while behind is not None:
        shown += f"{behind} {behind!r} {vars(behind)!r}"
        shown += "".join(traceback.format_exception(behind))
        behind = behind.__cause__ or behind.__context__
    return shown


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"url": "api.openai.com/v1"}, "must look like"),
        ({"url": "https://me:sk-1@host/v1"}, "an address alone"),
        ({"url": "https://host/v1?key=sk-1"}, "an address alone"),
        ({"key_env": "A", "key_file": "b"}, "exclude each other"),
        ({"timeout_s": 0}, "more than 0"),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        OpenAISettings(**({"model": "m", "url": "http://host/v1"} | wrong))
    assert "sk-1" not in str(caught.value)


def test_a_missing_key_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_KEY", raising=False)
    with pytest.raises(InputError, match="variable A_KEY holds no key"):
        ask("http://host/v1", key_env="A_KEY")
    with pytest.raises(InputError, match="cannot be read"):
        ask("http://host/v1", key_file=str(tmp_path / "absent"))
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="is empty"):
        ask("http://host/v1", key_file=str(tmp_path / "empty"))
    (tmp_path / "two").write_text("sk-1\nsk-2")
    with pytest.raises(InputError, match="one line") as caught:
        ask("http://host/v1", key_file=str(tmp_path / "two"))
    assert "sk-" not in str(caught.value)

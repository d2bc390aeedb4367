"""The server in a process of its own, asked over its socket as any client asks it."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from tiny_models import write_weights

from farthing.errors import BadRequestError, ContextTooLongError, InputError
from farthing.models.base import Completion, Message, Prompt
from farthing.models.chat_serving import bind
from farthing.models.openai_compatible import OpenAISettings
from farthing.models.prices import PriceTable, Rates, TokenPrice
from farthing_lab.lm.server import LARGEST_BODY
from farthing_lab.models.local import LocalModel, LocalSettings

PRICES = PriceTable({"tiny": TokenPrice((Rates(Decimal(1), Decimal(2)),))})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_weights(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def local(folder: Path) -> LocalModel:
    return LocalSettings(model="tiny", path=str(folder)).open(PRICES)


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """Serve at a free port until the tests are over; it ends well when it is asked to."""
    code = "from farthing.cli.main import run; run()"
    arguments = ["lm", "serve", "--path", str(folder), "--port", "0"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline() == "loading the models\n"
            said = process.stderr.readline()
            found = re.fullmatch(r"serving tiny at (http://127\.0\.0\.1:\d+/v1)\n", said)
            assert found, said
            yield found[1]
        finally:
            process.send_signal(signal.SIGINT)
        assert (process.wait(20), process.stderr.read()) == (0, "")


def asked(text: str, **wanted: Any) -> Prompt:
    return Prompt((Message("user", text),), **wanted)


def through(url: str, *prompts: Prompt) -> list[Completion | BaseException]:
    """Ask over HTTP, all at once, with Farthing's own client."""

    async def ask() -> list[Completion | BaseException]:
        model = OpenAISettings(model="tiny", url=url).open(PRICES)
        try:
            return await asyncio.gather(*map(model.complete, prompts), return_exceptions=True)
        finally:
            await model.aclose()

    return asyncio.run(ask())


def post(url: str, body: Any, path: str = "/chat/completions") -> tuple[int, Any]:
    async def send() -> tuple[int, Any]:
        data = BytesIO(body if isinstance(body, bytes) else msgspec.json.encode(body))
        async with aiohttp.ClientSession() as http, http.post(url + path, data=data) as reply:
            return reply.status, msgspec.json.decode(await reply.read())

    return asyncio.run(send())


def get(url: str) -> tuple[int, Any]:
    async def fetch() -> tuple[int, Any]:
        async with aiohttp.ClientSession() as http, http.get(url) as reply:
            return reply.status, await reply.json()

    return asyncio.run(fetch())


def test_a_remote_answer_is_the_local_one(url: str, local: LocalModel) -> None:
    prompts = [
        asked("a=4;a?", max_tokens=20, top_logprobs=3),
        asked("a=4;b=a+1;b?", max_tokens=30, temperature=1.0, seed=5, top_p=0.9),
        asked("c?", max_tokens=60, temperature=1.0, seed=1, stop=("a", "b")),
    ]
    for prompt, done in zip(prompts, through(url, *prompts), strict=True):
        assert isinstance(done, Completion)
        mine = asyncio.run(local.complete(prompt))
        assert (done.text, done.finish) == (mine.text, mine.finish)
        assert (done.usage, done.cost_nano) == (mine.usage, mine.cost_nano)
        assert [t.token for t in done.logprobs] == [t.token for t in mine.logprobs]
        for theirs, ours in zip(done.logprobs, mine.logprobs, strict=True):
            assert theirs.logprob == pytest.approx(ours.logprob, abs=1e-4)
            assert [token for token, _ in theirs.top] == [token for token, _ in ours.top]


def test_its_refusals_are_the_errors_that_they_mean(url: str) -> None:
    [long] = through(url, asked("a" * 250, max_tokens=20))
    assert isinstance(long, ContextTooLongError)
    assert "context of 256" in str(long)
    [hot] = through(url, asked("a", temperature=9.0))
    assert isinstance(hot, BadRequestError)
    assert "temperature" in str(hot)


def test_errors_have_the_form_and_the_status_of_openai(url: str) -> None:
    messages = [{"role": "user", "content": "a"}]
    replies = {
        404: post(url, {"model": "gpt-4o", "messages": messages}),
        400: post(url, b"{"),
        413: post(url, b" " * (LARGEST_BODY + 1)),
        405: get(url + "/chat/completions"),
    }
    for status, (got, body) in replies.items():
        assert got == status, body
        assert body["error"].keys() == {"message", "type", "param", "code"}
        assert body["error"]["type"] == "invalid_request_error"
    assert replies[404][1]["error"]["code"] == "model_not_found"
    assert replies[404][1]["error"]["message"] == "there is no model 'gpt-4o' here, but: tiny"
    assert get(url + "/nothing") == (
        404,
        {
            "error": {
                "message": "GET /v1/nothing: Not Found",
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
        },
    )


def test_models_are_listed_and_the_server_says_that_it_is_well(url: str) -> None:
    status, listed = get(url + "/models")
    assert (status, [model["id"] for model in listed["data"]]) == (200, ["tiny"])
    assert get(url + "/models/tiny")[1]["object"] == "model"
    assert get(url + "/models/other")[0] == 404
    assert get(url.removesuffix("/v1") + "/health") == (200, {"status": "ok", "models": ["tiny"]})


def test_choices_differ_and_the_limit_follows_from_the_context(url: str) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "a=4;a?"}], "n": 3, "seed": 1}
    status, reply = post(url, body)
    assert status == 200
    choices = reply["choices"]
    assert [choice["index"] for choice in choices] == [0, 1, 2]
    assert len({choice["message"]["content"] for choice in choices}) == 3
    assert reply["usage"]["prompt_tokens"] == 6
    assert reply["usage"]["completion_tokens"] <= 3 * 128
    assert post(url, body)[1]["choices"] == choices, "a seed repeats all of them"


def test_a_stream_is_the_reply_in_events(url: str) -> None:
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "a=4;a?"}],
        "max_tokens": 9,
        "temperature": 0,
    }

    async def read() -> tuple[str, list[str]]:
        wanted = body | {"stream": True}
        address = url + "/chat/completions"
        async with aiohttp.ClientSession() as http, http.post(address, json=wanted) as reply:
            return reply.content_type, (await reply.text()).split("\n\n")

    kind, events = asyncio.run(read())
    assert kind == "text/event-stream"
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [msgspec.json.decode(event.removeprefix("data: ")) for event in events[:-2]]
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    assert text == post(url, body)[1]["choices"][0]["message"]["content"]


@pytest.mark.slow
def test_a_client_that_goes_away_harms_nobody(url: str) -> None:
    async def leave() -> list[str]:
        model = OpenAISettings(model="tiny", url=url).open(PRICES)
        tasks = [
            asyncio.create_task(model.complete(asked("a=4;a?", max_tokens=n))) for n in (200, 30)
        ]
        await asyncio.sleep(0.05)
        tasks[0].cancel()
        again = await model.complete(asked("a=4;a?", max_tokens=30))
        found = [(await tasks[1]).text, again.text]
        await model.aclose()
        return found

    one, other = asyncio.run(leave())
    assert one == other != ""


@pytest.mark.clients
@pytest.mark.extras("openai")
def test_openais_own_client_is_content(url: str, local: LocalModel) -> None:
    client: Any = import_module("openai").OpenAI(base_url=url, api_key="none", max_retries=0)
    wanted: dict[str, Any] = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "a=4;a?"}],
        "max_tokens": 12,
        "temperature": 0,
    }
    mine = asyncio.run(local.complete(asked("a=4;a?", max_tokens=12, top_logprobs=2)))
    done = client.chat.completions.create(**wanted, logprobs=True, top_logprobs=2)
    assert done.choices[0].message.content == mine.text
    tokens = done.choices[0].logprobs.content
    assert [token.token for token in tokens] == [token.token for token in mine.logprobs]
    assert done.usage.completion_tokens == mine.usage.output_tokens
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(**wanted, stream=True, stream_options=options))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == mine.text
    assert chunks[-1].usage == done.usage
    assert [model.id for model in client.models.list()] == ["tiny"]
    with pytest.raises(import_module("openai").NotFoundError, match="no model 'other'"):
        client.chat.completions.create(**wanted | {"model": "other"})
    client.close()


@pytest.mark.slow
def test_a_port_that_is_taken_is_said() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"127.0.0.1, port {port}: address already in use"):
            bind("127.0.0.1", port)
    assert isinstance(taken, socket.socket)

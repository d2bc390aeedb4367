"""Clients that others wrote ask the gateway, with nothing changed but the address and the key."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import gateway
from policy_running import SYSTEM, config, letter, made_bundle

from farthing_gateway.storage.keys import KeyLimit, open_keys
from farthing_gateway.storage.migrations import migrate

SAID = "The answer is B."
"""What every model answers to number 7."""
ASKED = ["small", "farthing/letters"]
"""A model, of which nothing is promised, and a policy, of which an agreement is."""
MESSAGES = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "number 7"}]
# Some of them warn of each other's deprecations.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@dataclass(frozen=True)
class Gate:
    """A gateway that wants keys, and its stub upstream."""

    url: str
    key: str
    stub: Endpoint
    folder: Path

    def another_key(self, name: str, *limits: KeyLimit, models: tuple[str, ...] = ()) -> str:
        """Return a key that may do less."""
        return asyncio.run(made_key(self.folder, name, *limits, models=models))

    def openai(self, key: str | None = None, **options: Any) -> Any:
        """Return OpenAI's own client."""
        given = {"base_url": self.url, "api_key": key or self.key, "max_retries": 0} | options
        return import_module("openai").OpenAI(**given)


async def made_key(folder: Path, name: str, *limits: KeyLimit, models: tuple[str, ...] = ()) -> str:
    await migrate(str(folder / "gateway.db"))
    keys = await open_keys(str(folder / "gateway.db"))
    try:
        return (await keys.make(name, limits=limits, models=models))[1]
    finally:
        await keys.aclose()


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gate]:
    folder = tmp_path_factory.mktemp("clients")
    made_bundle(folder)
    key = asyncio.run(made_key(folder, "all"))
    with (
        Endpoint(letter) as stub,
        gateway(folder, config(stub, folder / "bundle", keys=True)) as running,
    ):
        yield Gate(running.url + "/v1", key, stub, folder)


def promised(asked: str) -> str:
    return "agreement" if asked.startswith("farthing/") else "none"


@pytest.mark.clients
@pytest.mark.extras("openai")
@pytest.mark.parametrize("asked", ASKED)
def test_openais_own_client_asks(gate: Gate, asked: str) -> None:
    with gate.openai() as client:
        done = client.chat.completions.create(model=asked, messages=MESSAGES)
        assert done.choices[0].message.content == SAID
        assert done.model in {asked, "small-2026"}
        assert done.usage.total_tokens > 0
        assert done.farthing["promise"] == promised(asked)
        raw = client.chat.completions.with_raw_response.create(model=asked, messages=MESSAGES)
        assert raw.headers["X-Farthing-Promise"] == promised(asked)
        assert float(raw.headers["X-Farthing-Cost-Usd"]) > 0
        assert raw.parse().choices[0].message.content == SAID


@pytest.mark.clients
@pytest.mark.extras("openai")
@pytest.mark.parametrize("usage", [False, True])
@pytest.mark.parametrize("asked", ASKED)
def test_openais_own_client_streams(gate: Gate, asked: str, *, usage: bool) -> None:
    wanted: dict[str, Any] = {"stream_options": {"include_usage": True}} if usage else {}
    with gate.openai() as client:
        chunks = list(
            client.chat.completions.create(model=asked, messages=MESSAGES, stream=True, **wanted)
        )
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert said == SAID
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert (chunks[-1].usage is not None) == usage
    if usage:
        assert chunks[-1].farthing["promise"] == promised(asked)


@pytest.mark.clients
@pytest.mark.extras("openai")
@pytest.mark.parametrize("asked", ASKED)
def test_openais_asynchronous_client_asks_and_streams(gate: Gate, asked: str) -> None:
    async def both() -> tuple[str, str]:
        client = import_module("openai").AsyncOpenAI(base_url=gate.url, api_key=gate.key)
        async with client:
            create = client.chat.completions.create
            done = await create(model=asked, messages=MESSAGES)
            pieces = [
                chunk.choices[0].delta.content or ""
                async for chunk in await create(model=asked, messages=MESSAGES, stream=True)
            ]
        return done.choices[0].message.content, "".join(pieces)

    assert asyncio.run(both()) == (SAID, SAID)


@pytest.mark.clients
@pytest.mark.extras("openai")
def test_openais_own_client_lists_models(gate: Gate) -> None:
    with gate.openai() as client:
        names = [one.id for one in client.models.list()]
        assert names == ["small", "large", "farthing/letters"]
        assert client.models.retrieve("farthing/letters").farthing["kind"] == "policy"


@pytest.mark.clients
@pytest.mark.extras("openai")
@pytest.mark.parametrize("stream", [False, True])
def test_openais_own_client_raises_what_it_would_of_openai(gate: Gate, *, stream: bool) -> None:
    openai: Any = import_module("openai")
    once = gate.another_key(f"once-{stream}", KeyLimit("calls", "minute", 1))
    poor = gate.another_key(f"poor-{stream}", KeyLimit("usd", "total", 0))
    narrow = gate.another_key(f"narrow-{stream}", models=("large",))

    def ask(key: str = gate.key, **fields: Any) -> Any:
        wanted = {"model": "small", "messages": MESSAGES, "stream": stream} | fields
        with gate.openai(key) as client:
            return client.chat.completions.create(**wanted)

    with pytest.raises(openai.AuthenticationError) as caught:
        ask("fk-00000000-wrong")
    assert caught.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError, match="no model 'gpt-9'"):
        ask(model="gpt-9")
    with pytest.raises(openai.BadRequestError) as caught:
        ask(temperature=3)
    assert caught.value.param == "temperature"
    with pytest.raises(openai.PermissionDeniedError):
        ask(narrow)
    with pytest.raises(openai.UnprocessableEntityError, match="no mode 'none'"):
        ask(model="farthing/letters", extra_body={"farthing": {"mode": "none"}})
    with pytest.raises(openai.APIStatusError) as caught:
        ask(poor)
    assert (caught.value.status_code, caught.value.code) == (402, "budget_exceeded")
    ask(once)
    with pytest.raises(openai.RateLimitError) as caught:
        ask(once)
    assert 1 <= int(caught.value.response.headers["Retry-After"]) <= 60


@pytest.mark.clients
@pytest.mark.extras("openai")
@pytest.mark.parametrize("asked", ASKED)
def test_openais_own_client_hears_of_failures_upstream(
    gate: Gate, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai: Any = import_module("openai")

    def ask(**fields: Any) -> Any:
        with gate.openai() as client:
            return client.chat.completions.create(model=asked, messages=MESSAGES, **fields)

    with monkeypatch.context() as slow:
        slow.setattr(gate.stub, "latency_s", 5.0)
        with pytest.raises(openai.APIStatusError) as caught:
            ask(extra_body={"farthing": {"deadline": 0.3}})
        assert (caught.value.status_code, caught.value.code) == (504, "deadline_exceeded")
        with pytest.raises(openai.APITimeoutError):
            ask(timeout=0.3)
    with monkeypatch.context() as broken:
        broken.setattr(gate.stub, "faults", {"500": 1.0})
        with pytest.raises(openai.InternalServerError) as caught:
            ask()
        assert caught.value.status_code == 502


@pytest.mark.clients
@pytest.mark.extras("openai")
def test_openais_own_client_hears_of_a_stream_that_breaks(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai: Any = import_module("openai")
    monkeypatch.setattr(gate.stub, "between_s", 0.3)
    with gate.openai() as client:
        chunks = client.chat.completions.create(
            model="small",
            messages=MESSAGES,
            stream=True,
            extra_body={"farthing": {"deadline": 0.7}},
        )
        with pytest.raises(openai.APIError, match="deadline"):
            list(chunks)


@pytest.mark.clients
@pytest.mark.extras("litellm")
@pytest.mark.parametrize("asked", ASKED)
def test_litellm_asks_and_streams(gate: Gate, asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches prices
    litellm: Any = import_module("litellm")
    wanted: dict[str, Any] = {
        "model": f"openai/{asked}",
        "messages": MESSAGES,
        "api_base": gate.url,
        "api_key": gate.key,
    }
    done = litellm.completion(**wanted)
    assert done.choices[0].message.content == SAID
    assert done.usage.total_tokens > 0
    pieces = list(litellm.completion(**wanted, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in pieces) == SAID
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**wanted | {"api_key": "fk-00000000-wrong"})


@pytest.mark.clients
@pytest.mark.extras("langchain_openai")
@pytest.mark.parametrize("asked", ASKED)
def test_langchain_asks_and_streams(gate: Gate, asked: str) -> None:
    chat = import_module("langchain_openai").ChatOpenAI(
        model=asked, base_url=gate.url, api_key=gate.key, max_retries=0
    )
    messages = [("system", SYSTEM), ("human", "number 7")]
    done = chat.invoke(messages)
    assert done.content == SAID
    assert done.usage_metadata["total_tokens"] > 0
    assert "".join(piece.content for piece in chat.stream(messages)) == SAID


@pytest.mark.clients
@pytest.mark.extras("llm")
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("stream", [False, True])
def test_the_command_llm_asks_and_streams(
    gate: Gate, asked: str, tmp_path: Path, *, stream: bool
) -> None:
    section = {"model_id": "mine", "model_name": asked, "api_base": gate.url}
    # JSON is YAML too. Without a name of its own for the key none is sent to another address.
    named = json.dumps([section | {"api_key_name": "mine"}])
    (tmp_path / "extra-openai-models.yaml").write_text(named)
    (tmp_path / "keys.json").write_text(json.dumps({"mine": gate.key}))
    known = {"LLM_USER_PATH": str(tmp_path), "LLM_LOAD_PLUGINS": ""}
    line = [
        "-m",
        "mine",
        "-s",
        SYSTEM,
        "--no-log",
        "number 7",
        *([] if stream else ["--no-stream"]),
    ]
    before = len(gate.stub.requests)
    done = subprocess.run(
        [sys.executable, "-m", "llm", *line],
        env=os.environ | known,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, SAID), done.stderr
    assert len(gate.stub.requests) == before + 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("stream", [False, True])
def test_curl_asks_and_streams(gate: Gate, asked: str, *, stream: bool) -> None:
    body = {"model": asked, "messages": MESSAGES, "stream": stream}
    line = ["--silent", "--show-error", "--max-time", "60", *(["-N"] if stream else [])]
    headers = ["-H", "Content-Type: application/json", "-H", f"Authorization: Bearer {gate.key}"]
    done = subprocess.run(
        ["curl", *line, *headers, "-d", json.dumps(body), f"{gate.url}/chat/completions"],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    if not stream:
        said = json.loads(done.stdout)
        assert said["choices"][0]["message"]["content"] == SAID
        assert said["farthing"]["promise"] == promised(asked)
        return
    events = done.stdout.strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    pieces = [json.loads(one[6:]) for one in events[:-1] if one.startswith("data: ")]
    assert "".join(p["choices"][0]["delta"].get("content", "") for p in pieces) == SAID
    (receipt,) = [one for one in events if one.startswith(": farthing ")]
    assert json.loads(receipt.removeprefix(": farthing "))["promise"] == promised(asked)

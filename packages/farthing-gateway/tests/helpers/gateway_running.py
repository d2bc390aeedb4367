"""A gateway that really runs, for tests: an address of its own, in a thread of its own."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import Any

from farthing.models.chat_serving import bind
from farthing_gateway.app import application
from farthing_gateway.config import read_config
from farthing_gateway.connections import ConnectionConfig, RetiringServer
from farthing_gateway.monitoring.base import Watch
from farthing_gateway.storage.migrations import migrate

UPSTREAM = """
[models.{name}]
provider = "openai-compatible"
model = "{name}-2026"
url = "{url}"
retries = {{ tries = {tries} }}
"""
PRICES = """
[prices]
"small-2026" = { input_per_million = 1, output_per_million = 2 }
"large-2026" = { input_per_million = 10, output_per_million = 20 }
"""


def models(url: str, *names: str, tries: int = 1) -> str:
    """Return the sections of upstream models at a stub, and their prices."""
    names = names or ("small", "large")
    return "".join(UPSTREAM.format(name=name, url=url, tries=tries) for name in names) + PRICES


def serve_section(**fields: Any) -> str:
    """Return the section `[serve]`, without keys unless they are asked for."""
    said = {"database": "gateway.db", "strongest": "large", "keys": False} | fields
    said = {"default_max_output": 4_096} | said  # or None
    given = {name: value for name, value in said.items() if value is not None}
    return "[serve]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in given.items())


@dataclass(frozen=True)
class Reply:
    """What an address said."""

    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON values."""
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The data of a stream's events."""
        lines = self.body.decode().split("\n\n")
        return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


@dataclass(frozen=True)
class Running:
    """A gateway under way."""

    url: str
    folder: Path

    def get(self, path: str, **headers: str) -> Reply:
        """Ask for an address."""
        return self.send(urllib.request.Request(self.url + path, headers=headers))

    def chat(
        self,
        model: str,
        *content: str,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Reply:
        """Ask for a chat completion of one message of the user, after system prompts."""
        *before, last = content
        messages = [{"role": "system", "content": one} for one in before]
        messages.append({"role": "user", "content": last})
        return self.post({"model": model, "messages": messages, **fields}, headers)

    def post(self, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
        """Post a chat completion."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send(
            urllib.request.Request(
                self.url + "/v1/chat/completions",
                data,
                {"Content-Type": "application/json", **(headers or {})},
            )
        )

    def send(self, request: urllib.request.Request) -> Reply:
        """Send a request; an error status is a reply too."""
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return Reply(reply.status, reply.headers, reply.read())
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, error.read())


@contextmanager
def gateway(
    folder: Path,
    text: str,
    *,
    record: bool = False,
    watch: bool = False,
    watching: Watch | None = None,
) -> Iterator[Running]:
    """Run the gateway of a configuration while the block runs."""
    file = folder / "serve.toml"
    file.write_text(text)
    config = read_config(file, record=record)
    listening = bind("127.0.0.1", 0)
    server = RetiringServer(
        ConnectionConfig(
            application(config, watch=watch, watching=watching),
            client_timeout_s=config.serve.client_timeout_s,
            log_level="error",
            access_log=False,
            lifespan="on",
        )
    )
    started = threading.Event()

    async def run() -> None:
        await migrate(config.serve.database)
        task = asyncio.ensure_future(server.serve(sockets=[listening]))
        while not server.started and not task.done():
            await asyncio.sleep(0.005)
        started.set()
        await task

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert started.wait(60), "the gateway did not start"
    assert server.started, "the gateway could not be opened"
    try:
        yield Running(f"http://127.0.0.1:{listening.getsockname()[1]}", folder)
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
        assert not thread.is_alive(), "the gateway did not end"

"""Keys and passwords are planted, everything is driven, and then they are looked for everywhere."""

import json
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from gateway_running import Reply, gateway, models, serve_section
from policy_running import POLICY, SYSTEM, letter, made_bundle
from serving import Process, request, serving

from farthing_gateway import app

UPSTREAM = "sk-upstream-Zx81planted7Qw"
PASSWORD = "pw-Planted55database"
COOKIE = "planted-cookie-3141"
RECORD = "\n[record]\nshare = 1.0\nusd_per_day = 1.0\nat_once = 50\n"
ENVIRONMENT = {"PLANTED_KEY": UPSTREAM}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of an agreement."""
    folder = tmp_path_factory.mktemp("bundle")
    made_bundle(folder)
    return folder / "bundle"


@contextmanager
def echoing() -> Iterator[Endpoint]:
    """Serve; a question that asks for it is failed with all that was sent, key and all."""
    stub = Endpoint(letter)

    def reply(body: dict[str, Any]) -> web.Response:
        content = body["messages"][-1]["content"]
        sent = json.dumps({"headers": stub.headers[-1], "body": body})
        if "echo" not in content:
            return web.json_response(completion(body, letter(body["messages"])))
        if "garbage" in content:  # the key lies where an excerpt is cut
            return web.Response(
                body=b"x" * 90 + stub.headers[-1]["Authorization"].encode(),
                content_type="application/json",
            )
        if "redirect" in content:
            raise web.HTTPFound(f"{stub.url}/elsewhere?{sent}")
        if "event" in content:
            text = f"data: {json.dumps({'error': {'message': sent}})}\n\n"
            return web.Response(body=text.encode(), content_type="text/event-stream")
        status = next((int(one) for one in content.split() if one.isdigit()), 500)
        return web.json_response({"error": {"message": sent}}, status=status)

    stub.reply = reply
    with stub:
        yield stub


def config(stub: Endpoint, bundle: Path, **serve: Any) -> str:
    """Return a configuration whose models need a key."""
    text = serve_section(keys=True, **serve) + models(stub.url)
    text = text.replace("retries = ", 'key_env = "PLANTED_KEY"\nretries = ')
    return text + POLICY.replace('"bundle"', json.dumps(str(bundle))) + RECORD


def made_key(folder: Path, name: str, *options: str) -> str:
    """Make a key as users do; return its secret."""
    command = [str(Path(sys.executable).parent / "farthing"), "keys", "make", name]
    done = subprocess.run(
        [*command, "--config", "serve.toml", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return next(word for word in (done.stdout + done.stderr).split() if word.startswith("fk-"))


def driven(running: Process, key: str, reader: str) -> list[Reply]:
    """Ask for everything that there is, and for every kind of failure."""
    opens = {"Authorization": f"Bearer {key}", "Cookie": f"session={COOKIE}"}
    wrong = {"Authorization": f"Bearer {key[:-1]}x", "Idempotency-Key": "once"}
    asked = ["number 7", "echo", "echo 400", "echo 401", "echo 429", "echo garbage"]
    asked += ["echo redirect", "echo event"]
    replies = []
    for content in asked:
        for stream in (False, True):
            for model in ("large", "small", "farthing/letters"):
                body = request(model, content, stream=stream)
                body["messages"].insert(0, {"role": "system", "content": SYSTEM})
                replies.append(running.post(body, opens))
    again = {**opens, "Idempotency-Key": f"once {key}"}
    replies += [running.post(request("large", "number 8"), again) for _ in range(2)]
    replies += [running.post(request(name, "x"), opens) for name in ("none", "farthing/none")]
    replies += [running.post(b"{", opens), running.post(request("large", "x"), wrong)]
    replies += [running.get(path, **opens) for path in ("/v1/models", "/ready", "/openapi.json")]
    replies += [running.get("/metrics", Authorization=f"Bearer {reader}"), running.get("/none")]
    return replies


def shown(replies: list[Reply]) -> str:
    """Return all that clients were told."""
    return "\n".join(f"{one.headers}{one.body.decode(errors='replace')}" for one in replies)


def export(folder: Path) -> str:
    """Return what is recorded, as it leaves the gateway."""
    command = [str(Path(sys.executable).parent / "farthing"), "traffic", "export"]
    done = subprocess.run(
        [*command, "--config", "serve.toml", "--policy", "letters", "--out", "out.jsonl"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr + (folder / "out.jsonl").read_text()


@pytest.mark.slow
def test_no_secret_is_found_anywhere(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", UPSTREAM)
    with echoing() as stub:
        text = config(stub, bundle)
        (tmp_path / "serve.toml").write_text(text)
        key, reader = made_key(tmp_path, "app"), made_key(tmp_path, "see", "--scope", "read")
        with serving(tmp_path, text) as running:
            replies = driven(running, key, reader)
            assert {one.status for one in replies} >= {200, 400, 401, 404, 429, 502}
            told = shown(replies)
            log = running.said()
            on_disk = b"".join(one.read_bytes() for one in tmp_path.glob("gateway.db*"))
            kept = export(tmp_path)
    places = {"replies": told, "log": log + running.said(), "traffic": kept}
    places["database"] = (on_disk + (tmp_path / "gateway.db").read_bytes()).decode("latin-1")
    for place, found in places.items():
        for secret in (key, reader, UPSTREAM, UPSTREAM[:15], COOKIE):
            assert secret not in found, (place, secret, found[found.index(secret) - 300 :][:600])
    assert "The answer is B." in places["traffic"]
    assert_nothing_forwarded(stub, key)


def assert_nothing_forwarded(stub: Endpoint, key: str) -> None:
    """Check that upstream calls have the gateway's own key, and nothing of the client's."""
    assert stub.requests
    for headers in stub.headers:
        assert headers["Authorization"] == f"Bearer {UPSTREAM}"
        assert "Cookie" not in headers
        assert key not in json.dumps(headers)


@pytest.mark.slow
def test_a_database_password_is_found_nowhere(
    tmp_path: Path, bundle: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", UPSTREAM)
    user, _, rest = schema.partition("@")
    with echoing() as stub:
        text = config(stub, bundle, database=f"{user}:{PASSWORD}@{rest}", workers=2)
        (tmp_path / "serve.toml").write_text(text)
        key, reader = made_key(tmp_path, "app"), made_key(tmp_path, "see", "--scope", "read")
        with serving(tmp_path, text) as running:
            told = shown(driven(running, key, reader))
        kept = export(tmp_path)
        with pytest.raises(AssertionError), serving(tmp_path, text.replace("?host=", "?host=/x")):
            pass
    for found in (told, running.said(), kept):
        assert PASSWORD not in found
        assert UPSTREAM not in found


def test_what_nobody_expected_is_logged_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def breaks(*_: object) -> None:
        raise RuntimeError(UPSTREAM)

    monkeypatch.setattr(app, "answer", breaks)
    with gateway(tmp_path, serve_section() + models("http://127.0.0.1:9/v1")) as running:
        reply = running.chat("large", "x")
    assert (reply.status, reply.json["error"]["code"]) == (500, "internal_error")
    assert "RuntimeError" in caplog.text
    assert UPSTREAM not in caplog.text + reply.body.decode()


def test_a_database_that_is_away_is_no_fault_of_the_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with gateway(tmp_path, serve_section() + models("http://127.0.0.1:9/v1")) as running:
        with sqlite3.connect(tmp_path / "gateway.db") as connection:
            connection.execute("DROP TABLE ledger_holds")
        connection.close()
        for reply in (running.chat("large", "x"), running.chat("large", "x", stream=True)):
            assert (reply.status, reply.json["error"]["code"]) == (503, "database_unavailable")
            assert "gateway.db" not in reply.body.decode()
    assert "gateway.db" in caplog.text


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with Endpoint() as other:

        def reply(_: dict[str, Any]) -> web.Response:
            raise web.HTTPTemporaryRedirect(f"{other.url}/chat/completions")

        with (
            Endpoint(reply=reply) as stub,
            gateway(tmp_path, serve_section() + models(stub.url)) as it,
        ):
            statuses = [it.chat("large", "x", stream=stream).status for stream in (False, True)]
        assert statuses == [502, 502]
        assert not other.requests


def test_a_client_that_leaves_while_it_sends_is_no_error_of_the_gateway(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with gateway(tmp_path, serve_section() + models("http://127.0.0.1:9/v1")) as running:
        host, port = running.url.removeprefix("http://").split(":")
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n{"
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head.encode())
        time.sleep(0.3)
        assert running.get("/health").status == 200
    assert not caplog.records

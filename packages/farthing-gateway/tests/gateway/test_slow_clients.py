"""Clients that are slow to send or to read: they are not waited for."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import Running, gateway, models, serve_section
from serving import total, until

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
MOST_S = 30.0


@contextmanager
def running(folder: Path, stub: Endpoint | None = None) -> Iterator[Running]:
    """Run a gateway that waits a second and a half for its clients."""
    text = serve_section(client_timeout_s=1.5) + models(stub.url if stub else "http://127.0.0.1:9")
    with gateway(folder, text) as one:
        yield one


def connected(one: Running, sent: bytes = b"", buffer: int | None = None) -> socket.socket:
    """Return a connection on which something was sent; it may take in little."""
    host, port = one.url.removeprefix("http://").split(":")
    connection = socket.socket()
    if buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(MOST_S)
    connection.connect((host, int(port)))
    connection.sendall(sent)
    return connection


def heard(connection: socket.socket) -> bytes:
    """Return what comes until the connection is closed."""
    said = b""
    try:
        while piece := connection.recv(65_536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def dripped(connection: socket.socket, each: bytes) -> float:
    """Send a little again and again; return the seconds until the connection was closed."""
    began = time.monotonic()
    try:
        while time.monotonic() < began + MOST_S:
            connection.sendall(each)
            time.sleep(0.1)
    except OSError:
        pass
    return time.monotonic() - began


@pytest.mark.parametrize("sent", [b"", b"POST /v1", HEAD], ids=["nothing", "a word", "headers"])
def test_headers_that_do_not_come_are_not_waited_for(tmp_path: Path, sent: bytes) -> None:
    with running(tmp_path) as one, ExitStack() as stack:
        idle = [stack.enter_context(connected(one, sent)) for _ in range(50)]
        assert heard(idle[-1]) == b""
        assert one.get("/health").status == 200


def test_headers_that_come_drop_by_drop_are_cut_off(tmp_path: Path) -> None:
    with running(tmp_path) as one:
        with connected(one, HEAD) as connection:
            assert dripped(connection, b"X-More: 1\r\n") < MOST_S
        with connected(one, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n") as connection:
            assert b"200 OK" in connection.recv(65_536)  # also those of a second request
            connection.sendall(b"GET /health HTTP/1.1\r\n")
            assert dripped(connection, b"X-More: 1\r\n") < MOST_S


def test_a_body_that_does_not_come_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as one, connected(one, HEAD + b"Content-Length: 900\r\n\r\n{") as late:
        head, body = heard(late).split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408")
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["code"] == "request_timeout"


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_who_does_not_read_is_cut_off_and_pays(tmp_path: Path, *, stream: bool) -> None:
    size = 60_000 if stream else 500_000
    content = {"role": "user", "content": "say it"}
    body = json.dumps({"model": "large", "messages": [content], "stream": stream}).encode()
    sent = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with Endpoint(lambda _: "many words " * size) as stub, running(tmp_path, stub) as one:
        with connected(one, sent, buffer=4_096) as idle:
            database = str(tmp_path / "gateway.db")
            until(lambda: total(database).settled.calls == 1, 30)
            time.sleep(5)
            assert len(heard(idle)) < 5_000_000
        assert total(database).held.calls == 0
        until(lambda: "farthing_requests_under_way 0.0" in one.get("/metrics").body.decode())


@pytest.mark.slow
def test_who_reads_slowly_and_steadily_is_not_cut_off(tmp_path: Path) -> None:
    content = {"role": "user", "content": "say it"}
    body = json.dumps({"model": "large", "messages": [content], "stream": True}).encode()
    sent = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    with (
        Endpoint(lambda _: "many words " * 30_000) as stub,
        running(tmp_path, stub) as one,
        connected(one, sent, buffer=4_096) as slow,
    ):
        for _ in range(60):  # six times the limit, and far from the end
            assert slow.recv(2_048)
            time.sleep(0.05)
        assert b"data: [DONE]" in heard(slow)


def test_a_client_that_takes_its_time_within_the_limit_is_answered(tmp_path: Path) -> None:
    body = json.dumps({"model": "small", "messages": [{"role": "user", "content": "a b"}]}).encode()
    parts = [HEAD, f"Content-Length: {len(body)}\r\n\r\n".encode(), body[:9], body[9:]]
    with Endpoint() as stub, running(tmp_path, stub) as one, connected(one) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(0.1)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")

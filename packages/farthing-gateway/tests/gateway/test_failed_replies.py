"""What failed is no answer: status, body, ledger, breaker, fallback, replay and records over HTTP.

Also when a stream has ended, and what else of one is read.
"""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from gateway_running import PRICES, UPSTREAM, Reply, Running, gateway, serve_section
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import marked, recorded, until

from farthing_gateway.storage.ledger.base import AccountBalance
from farthing_gateway.storage.ledger.ledger import open_ledger

USED = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
NANO = 100 * 10_000 + 10 * 20_000
RESPONSES_USED = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
SAID = "Zounds"
EVENTS = "text/event-stream"
MESSAGES = [{"role": "user", "content": "two words"}]
ASKED: dict[str, Any] = {
    "chat/completions": {"messages": MESSAGES, "max_tokens": 50},
    "responses": {"input": "two words", "max_output_tokens": 50},
    "messages": {"messages": MESSAGES, "max_tokens": 50},
}


def choice(said: str = SAID, finish: str | None = None, index: int = 0, **more: Any) -> Any:
    return {"index": index, "delta": {"content": said}, "finish_reason": finish} | more


def chunk(*choices: Any, **more: Any) -> Any:
    return {"id": "c", "object": "chat.completion.chunk", "choices": [*choices], **more}


def chat(finish: str = "stop", **more: Any) -> Any:
    message = {"role": "assistant", "content": SAID}
    one = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": [one]} | more


def response(status: str, **more: Any) -> Any:
    part = {"type": "output_text", "text": SAID, "annotations": []}
    item = {"type": "message", "role": "assistant", "content": [part]}
    whole = {"object": "response", "status": status, "model": "m", "output": [item]}
    return whole | {"error": None, "usage": None} | more


def message(stop: str | None, **more: Any) -> Any:
    content = [{"type": "text", "text": SAID}]
    whole = {"type": "message", "role": "assistant", "content": content, "model": "m"}
    return whole | {"stop_reason": stop} | more


def events(*data: Any, end: str = "\n", done: bool = False) -> bytes:
    said = [json.dumps(one) if not isinstance(one, str) else one for one in data]
    lines = [f"data: {one}{end}{end}" for one in (*said, *(["[DONE]"] if done else []))]
    return "".join(lines).encode()


@dataclass
class Provider:
    """Answers every request with some bytes, over HTTP as a test has it."""

    body: bytes = b""
    kind: str = "application/json"
    pieces: int = 1
    """How many it is written in."""
    cut: bool = False
    """Whether the connection breaks before the end of its HTTP message."""
    url: str = ""
    asked: list[Any] = field(default_factory=list)

    def says(self, body: Any, kind: str = "", **more: Any) -> None:
        """Answer so from now on."""
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.kind = kind or (EVENTS if self.body.startswith(b"data") else "application/json")
        self.pieces, self.cut = more.get("pieces", 1), more.get("cut", False)


@contextmanager
def serving() -> Iterator[Provider]:
    """Run a provider."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            provider.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("Content-Type", provider.kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            size = max(1, -(-len(provider.body) // provider.pieces))
            for at in range(0, len(provider.body), size):
                part = provider.body[at : at + size]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            if provider.cut:
                self.close_connection = True
            else:
                self.wfile.write(b"0\r\n\r\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    provider.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Both:
    """A gateway, the provider of `large`, and that of its fallback `small`."""

    running: Running
    large: Provider
    small: Provider

    def ask(self, path: str = "chat/completions", **more: Any) -> Reply:
        """Ask `large`."""
        body = {"model": "large", **ASKED[path], **more}
        once = {} if "key" not in more else {"Idempotency-Key": body.pop("key")}
        return post(self.running, path, body, once)

    @property
    def nano(self) -> int:
        """What was charged so far, once nothing is held."""
        until(lambda: not self._all or not self._all[0].held.calls)
        return sum(one.settled.nano for one in self._all)

    @property
    def _all(self) -> list[AccountBalance]:
        database = str(self.running.folder / "gateway.db")
        return balances(database)


def balances(database: str) -> list[AccountBalance]:
    """Return where all calls together stand, over all time; nothing before the first."""

    async def read() -> list[AccountBalance]:
        ledger = await open_ledger(database)
        try:
            return [one for one in await ledger.balances(["all"]) if one.period == "total"]
        finally:
            await ledger.aclose()

    return asyncio.run(read())


def post(running: Running, path: str, body: Any, headers: dict[str, str]) -> Reply:
    sent = {"Content-Type": "application/json", **headers}
    data = json.dumps(body).encode()
    return running.send(urllib.request.Request(f"{running.url}/v1/{path}", data, sent))


@contextmanager
def two(folder: Path, *, fallback: bool, rests: float = 0.0) -> Iterator[Both]:
    with serving() as large, serving() as small:
        apis = 'apis = ["completions", "responses", "messages"]\nretries ='
        text = serve_section(lease_s=60.0, deadline_s=30.0, cooldown_s=rests)
        text += "[serve.fallbacks]\nlarge = ['small']\n" if fallback else ""
        for name, provider in (("large", large), ("small", small)):
            text += UPSTREAM.format(name=name, url=provider.url, tries=1).replace("retries =", apis)
        text += PRICES + "[record]\nshare = 0.0\n"
        with gateway(folder, text) as running:
            yield Both(running, large, small)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A gateway whose `large` has no fallback."""
    with two(tmp_path_factory.mktemp("alone"), fallback=False) as both:
        yield both


@pytest.fixture(scope="module")
def backed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """One whose `small` answers where `large` fails."""
    with two(tmp_path_factory.mktemp("backed"), fallback=True) as both:
        yield both


NUMBERS = count()
CHAT, RESPONSES, ANTHROPIC = "chat/completions", "responses", "messages"
CUT = {"reason": "max_output_tokens"}
RATE = {"message": "slow down", "code": 429}
BROKEN = {"message": "died", "code": 502}
FAILED: list[tuple[str, Any, int, int]] = [
    # path, whole reply, status that the client hears, nano-dollars
    (CHAT, {"error": RATE, "user_id": "u"}, 429, 0),
    (CHAT, {"error": "out of memory"}, 502, 0),
    (CHAT, [{"error": RATE}], 429, 0),
    (CHAT, {"error": [RATE]}, 429, 0),
    (CHAT, {"error": {"error": RATE}}, 429, 0),
    (CHAT, {"detail": "busy"}, 502, 0),
    (CHAT, RATE, 429, 0),
    (CHAT, {"base_resp": {"status_code": 1008, "status_msg": "no"}, "choices": None}, 502, 0),
    (CHAT, chat("malformed_function_call", usage=USED), 502, NANO),
    (CHAT, {"error": RATE, "choices": "none", "model": 4}, 429, 0),
    (CHAT, chat("error", usage=USED), 502, NANO),
    (CHAT, chat("error", usage=USED | {"cost": 0}), 502, 0),
    (CHAT, chat("stop", error=BROKEN), 502, 0),
    (CHAT, chat("content_filter"), 400, 0),
    (RESPONSES, response("failed", error={"code": "rate_limit_exceeded", "message": "m"}), 429, 0),
    (RESPONSES, response("cancelled", usage=RESPONSES_USED), 502, NANO),
    (RESPONSES, response("incomplete", incomplete_details={"reason": "content_filter"}), 400, 0),
    (RESPONSES, response("incomplete"), 502, 0),
    (ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, 502, 0),
    (ANTHROPIC, message("refusal"), 400, 0),
]


@pytest.mark.parametrize(("path", "body", "status", "nano"), FAILED)
def test_a_whole_reply_that_failed_costs_what_it_says(
    alone: Both, path: str, body: Any, status: int, nano: int
) -> None:
    key, before, kept = str(next(NUMBERS)), alone.nano, len(recorded(alone.running.folder))
    alone.large.says(body)
    reply = alone.ask(path, key=key)
    assert reply.status == status
    assert SAID.encode() not in reply.body
    assert alone.nano - before == nano
    alone.large.says(chat() if path == CHAT else response("completed"))
    assert alone.ask(CHAT if path == CHAT else RESPONSES, key=key + "b").status == 200
    alone.large.says(body)
    assert alone.ask(path, key=key).status == status, "no failure is an answer to replay"
    until(lambda: len(recorded(alone.running.folder)) == kept + 1)
    assert marked(str(alone.running.folder / "gateway.db")) == []


@pytest.mark.parametrize(("path", "body", "status", "nano"), FAILED)
@pytest.mark.parametrize("stream", [False, True])
def test_its_fallback_is_asked(
    backed: Both, path: str, body: Any, status: int, nano: int, *, stream: bool
) -> None:
    if stream and status == 400:
        pytest.skip("its text is with the client before its finish reason")
    before, kept = backed.nano, len(recorded(backed.running.folder))
    backed.large.says(body)
    good = {CHAT: chat(usage=USED), RESPONSES: response("completed", usage=RESPONSES_USED)}
    backed.small.says(good.get(path, message("end_turn", usage=RESPONSES_USED)))
    reply = backed.ask(path, stream=stream)
    assert reply.status == 200, reply.body
    assert SAID.encode() in reply.body
    assert backed.nano - before == nano + NANO // 10
    until(lambda: len(recorded(backed.running.folder)) == kept + 1)
    failed, answered = recorded(backed.running.folder)[-1].trace.calls
    assert (failed.role, failed.answer, answered.role) == ("large", None, "small")


BEGUN = message(None, content=[], usage={"input_tokens": 100, "output_tokens": 1})
STARTED = {"type": "message_start", "message": BEGUN}
CREATED = {"type": "response.created", "response": response("in_progress", output=[])}
FAILS = {"type": "response.failed", "response": {"error": {"code": "server_error"}}}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (RESPONSES, [CREATED, CREATED | {"type": "response.in_progress"}, FAILS]),
        (RESPONSES, [CREATED]),
        (ANTHROPIC, [STARTED, {"type": "ping"}, {"type": "error", "error": {"message": "m"}}]),
    ],
)
def test_what_fails_before_it_says_anything_has_not_begun(
    backed: Both, path: str, data: Any
) -> None:
    backed.large.says(events(*data), pieces=50)
    used = response("completed", usage=RESPONSES_USED)
    backed.small.says(used if path == RESPONSES else message("end_turn", usage=RESPONSES_USED))
    reply = backed.ask(path, stream=True)
    assert (reply.status, SAID.encode() in reply.body) == (200, True)
    assert b'"answered_by":"small"' in reply.body
    assert reply.body.count(b"response.created") == 0


def test_the_breaker_is_told(tmp_path: Path) -> None:
    with two(tmp_path, fallback=True, rests=30.0) as both:
        both.large.says(chat("error"))
        both.small.says(chat(usage=USED))
        assert [both.ask().status for _ in range(5)] == [200] * 5
        assert len(both.large.asked) == 3


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, chat("content_filter", usage=USED)),
        (CHAT, events(chunk(choice()), chunk(choice("", "content_filter")), chunk(usage=USED))),
        (RESPONSES, response("incomplete", incomplete_details=CUT, usage=RESPONSES_USED)),
        (ANTHROPIC, message("refusal", usage=RESPONSES_USED)),
    ],
)
def test_what_was_cut_and_counted_is_passed_on_and_is_no_evidence(
    alone: Both, path: str, body: Any
) -> None:
    before, kept = alone.nano, len(recorded(alone.running.folder))
    alone.large.says(body)
    reply = alone.ask(path, stream=isinstance(body, bytes))
    assert (reply.status, SAID.encode() in reply.body) == (200, True)
    assert alone.nano - before == NANO
    until(lambda: len(recorded(alone.running.folder)) == kept + 1)
    (call,) = recorded(alone.running.folder)[-1].trace.calls
    assert (call.answer, call.error is None) == (None, False)


FINISHED = (chunk(choice()), chunk(choice("", "stop"), usage=USED))
SAYS = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}}
STOPPED = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
COUNTED = STOPPED | {"usage": {"output_tokens": 10}}
TOLD = {"type": "response.output_text.delta", "delta": SAID}
DONE = {"type": "response.completed", "response": response("completed", usage=RESPONSES_USED)}


@pytest.mark.parametrize("pieces", [1, 1_000])
@pytest.mark.parametrize(
    ("path", "body", "more"),
    [
        (CHAT, events(*FINISHED), {}),
        (CHAT, events(*FINISHED, end="\r"), {}),
        (CHAT, events(*FINISHED, end="\r\n"), {}),
        (CHAT, b"\xef\xbb\xbf" + events(*FINISHED), {"kind": EVENTS}),
        (CHAT, events(*FINISHED), {"kind": "text/plain; charset=utf-8"}),
        (CHAT, events(*FINISHED).rstrip(), {}),
        (CHAT, events("", {}, *FINISHED, ""), {}),
        (CHAT, b": ping\n\n\n" + events(*FINISHED), {"kind": EVENTS}),
        (CHAT, events(*FINISHED), {"cut": True}),
        (CHAT, events(FINISHED[0], chunk(choice("", "stop")), chunk(choices=None, usage=USED)), {}),
        (CHAT, b"\xef\xbb\xbf \n" + json.dumps(chat(usage=USED)).encode(), {"kind": "text/plain"}),
        (RESPONSES, events(TOLD, DONE), {}),
        (RESPONSES, json.dumps(DONE["response"]).encode(), {}),
        (ANTHROPIC, events(STARTED, SAYS, COUNTED), {}),
        (ANTHROPIC, events(STARTED, SAYS, COUNTED, {"type": "message_stop"}), {"cut": True}),
        (ANTHROPIC, json.dumps(message("end_turn", usage=RESPONSES_USED)).encode(), {}),
    ],
)
def test_a_stream_is_whole_once_its_choices_are(
    alone: Both, path: str, body: bytes, more: dict[str, Any], pieces: int
) -> None:
    before = alone.nano
    alone.large.says(body, **more, pieces=pieces)
    reply = alone.ask(path, stream=True)
    assert (reply.status, reply.body.count(SAID.encode()) >= 1) == (200, True)
    assert all("error" not in json.loads(e) or "id" in e for e in reply.events if e != "[DONE]")
    assert b"\n: farthing" in reply.body
    assert alone.nano - before == NANO


@pytest.mark.parametrize(
    ("path", "body", "more"),
    [
        (CHAT, events(FINISHED[0]), {}),
        (CHAT, events(FINISHED[0], chunk(choice("", ""), usage=USED)), {}),
        (CHAT, events(FINISHED[0], chunk(choice("", "stop"))), {"cut": True}),
        (CHAT, events(*FINISHED), {"n": 2}),
        (CHAT, events(FINISHED[0], chunk(choice(index=1)), FINISHED[1]), {"n": 2}),
        (CHAT, events(chunk(usage=USED), FINISHED[0]), {}),
        (CHAT, events(*FINISHED)[:-30], {}),
        (RESPONSES, events(TOLD), {}),
        (ANTHROPIC, events(STARTED, SAYS), {}),
    ],
)
def test_a_torn_stream_counts_in_full(
    alone: Both, path: str, body: bytes, more: dict[str, Any]
) -> None:
    before = alone.nano
    alone.large.says(body, cut=more.pop("cut", False))
    reply = alone.ask(path, stream=True, key=(key := str(next(NUMBERS))), **more)
    assert reply.status == 200
    assert b'"error"' in reply.body
    assert alone.nano - before > NANO
    alone.large.says(events(*FINISHED))
    if path == CHAT and not more:
        assert b'"error"' not in alone.ask(path, stream=True, key=key).body.split(b": farth")[0]


ENDS = (
    chunk(choice("", "error"), error=BROKEN, usage=USED),
    chunk(choice("", "error"), usage=USED),
    {"error": RATE, "usage": USED},
)


@pytest.mark.parametrize("last", ENDS)
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("done", [False, True])
def test_a_stream_that_fails_amid_its_pieces_costs_what_it_says(
    alone: Both, last: Any, *, counted: bool, done: bool
) -> None:
    before, kept = alone.nano, len(recorded(alone.running.folder))
    said = {name: value for name, value in last.items() if counted or name != "usage"}
    alone.large.says(events(chunk(choice()), said, done=done))
    key = str(next(NUMBERS))
    reply = alone.ask(stream=True, key=key)
    assert (reply.status, SAID.encode() in reply.body) == (200, True)
    assert "upstream_" in json.loads(reply.events[-2])["error"]["code"]
    assert b": farthing" not in reply.body
    assert alone.nano - before == (NANO if counted else 0)
    alone.large.says(events(*FINISHED))
    assert b": farthing" in alone.ask(stream=True, key=key).body, "it is no answer to replay"
    until(lambda: len(recorded(alone.running.folder)) == kept + 1)


def test_an_event_that_is_called_error_is_one(alone: Both) -> None:
    before = alone.nano
    alone.large.says(b'event: error\ndata: {"code": "Throttling", "message": "slow"}\n\n', EVENTS)
    assert alone.ask(stream=True).status == 429
    assert alone.nano == before


COUNTS = st.none() | st.fixed_dictionaries(
    {"prompt_tokens": st.integers(0, 200), "completion_tokens": st.integers(0, 50)}
)
ERRORS = st.sampled_from([RATE, BROKEN, "no", {"type": "server_error"}, {"code": "odd"}])
MARKED = st.one_of(
    st.fixed_dictionaries({"error": ERRORS}),
    st.builds(lambda error: chat(error=error), ERRORS),
    st.builds(chat, st.sampled_from(["error", "abort", "cancelled", "network_error"])),
    st.builds(lambda error: chat(choices=[{"message": {"content": SAID}, "error": error}]), ERRORS),
)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(reply=MARKED, usage=COUNTS, stream=st.booleans())
def test_a_reply_marked_failed_is_no_evidence_and_costs_no_more_than_it_says(
    alone: Both, reply: Any, usage: Any, *, stream: bool
) -> None:
    before, kept = alone.nano, len(recorded(alone.running.folder))
    alone.large.says(reply if usage is None else reply | {"usage": usage})
    assert alone.ask(stream=stream).status != 200
    used = usage or {"prompt_tokens": 0, "completion_tokens": 0}
    said = used["prompt_tokens"] * 10_000 + used["completion_tokens"] * 20_000
    assert alone.nano - before <= said
    assert len(recorded(alone.running.folder)) == kept

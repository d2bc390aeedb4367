"""OpenTelemetry: what a collector is really sent of requests, their tries and what they took."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import gateway, models, serve_section

from farthing.errors import MissingExtraError
from farthing_gateway.telemetry import open_telemetry

SECRET = "a text that nobody else is to see"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@contextmanager
def collector() -> Iterator[tuple[str, dict[str, list[bytes]]]]:
    """Run a collector of OTLP over HTTP; give its address and what it was sent, by path."""
    heard: dict[str, list[bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.setdefault(self.path, []).append(body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()


def attributes(one: Any) -> dict[str, Any]:
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in one.attributes}


@pytest.mark.extras("opentelemetry")
def test_a_request_is_a_span_and_each_try_its_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.time_ns()
    text = serve_section(telemetry=True, fallbacks={})
    with collector() as (address, heard), Endpoint(faults={"500": 1.0}, only_first=True) as stub:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "our-gateway")
        with gateway(tmp_path, text + models(stub.url, tries=2)) as running:
            done = running.chat("small", SECRET, headers={"traceparent": PARENT})
            assert done.status == 200
            assert running.chat("small", SECRET, stream=True).status == 200
            assert running.chat("none", SECRET).status == 404
            once = {"Idempotency-Key": "one"}
            assert [running.chat("small", SECRET, headers=once).status for _ in "ab"] == [200, 200]
    proto = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    sent = [proto.ExportTraceServiceRequest.FromString(one) for one in heard["/v1/traces"]]
    (resource,) = {str(part.resource) for one in sent for part in one.resource_spans}
    assert "our-gateway" in resource
    spans = [s for x in sent for r in x.resource_spans for p in r.scope_spans for s in p.spans]
    servers = [s for s in spans if s.name == "POST /v1/chat/completions"]
    assert [attributes(s)["http.response.status_code"] for s in servers] == [
        200,
        200,
        404,
        200,
        200,
    ]
    first, streamed, _, _, again = servers
    assert not [s for s in spans if s.parent_span_id == again.span_id], "it was not asked again"
    assert (first.trace_id.hex(), first.parent_span_id.hex()) == tuple(PARENT.split("-")[1:3])
    assert began < first.start_time_unix_nano < first.end_time_unix_nano < time.time_ns()
    tries = [s for s in spans if s.parent_span_id == first.span_id]
    assert [s.name for s in tries] == ["chat small-2026"] * 2
    failed, answered = map(attributes, tries)
    assert failed["error.type"] == "connection"
    assert "gen_ai.usage.input_tokens" not in failed, "nobody counted any"
    assert answered["gen_ai.request.model"] == "small-2026"
    assert answered["gen_ai.usage.output_tokens"] > 0
    assert attributes(first)["farthing.cost_usd"] == pytest.approx(
        done.json["farthing"]["cost_usd"]
    )
    for one in tries:
        assert first.start_time_unix_nano <= one.start_time_unix_nano <= one.end_time_unix_nano
    assert len([s for s in spans if s.parent_span_id == streamed.span_id]) == 1
    assert SECRET.encode() not in b"".join(b"".join(some) for some in heard.values())
    metrics = import_module("opentelemetry.proto.collector.metrics.v1.metrics_service_pb2")
    (last, *_) = reversed(heard["/v1/metrics"])
    told = metrics.ExportMetricsServiceRequest.FromString(last)
    found = {
        m.name: m for r in told.resource_metrics for part in r.scope_metrics for m in part.metrics
    }
    durations = found["gen_ai.client.operation.duration"].histogram.data_points
    assert sum(point.count for point in durations) == 4
    assert {"gen_ai.client.token.usage", "farthing.cost"} <= found.keys()


def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(MissingExtraError, match=r"\[.*otel\]"):
        open_telemetry({})

#!/usr/bin/env bash
# Found with: opentelemetry-instrumentation-anthropic 0.62.4, openinference-instrumentation-anthropic 3.1.0,
# anthropic 2.14.0, opentelemetry-sdk 1.45.2, Python 3.11.
#
# One would guess: a span of a streamed Anthropic call has the same token counts as the span of the same call unstreamed, and
# both instrumentations agree on them.
#
# Seen: the counts of the stream's last event (message_delta) are cumulative, as the SDK's own types say, and replace those of
# the first (message_start). opentelemetry-instrumentation-anthropic adds the two output counts, and keeps the first input
# count. A call that searched the web, begun with 2,000 input tokens and 4 output tokens and ended with 12,000 and 600,
# has 2,000 and 604 in its span when streamed, and 12,000 and 600 when not. The SDK's final message and
# openinference-instrumentation-anthropic say 12,000 and 600 either way.
#
# Why it matters: what a search finds is input, and costs as such. At $3 and $15 per million tokens, the tokens of this call
# cost $0.015 by its streamed span in place of $0.045, and switching an application to streaming looks like a saving of two
# thirds. The outputs of all streamed calls are too high by what their first event counts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check anthropic==2.14.0 opentelemetry-sdk==1.45.2 \
    opentelemetry-instrumentation-anthropic==0.62.4 openinference-instrumentation-anthropic==3.1.0
cat > "$folder/spans.py" <<'PYTHON'
"""Prints the input and output tokens of one call, unstreamed and streamed, as a library writes them into its spans."""

import importlib
import json
import sys

import anthropic
import httpx2
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

first = {"input_tokens": 2_000, "output_tokens": 4}
last = {"input_tokens": 12_000, "output_tokens": 600, "server_tool_use": {"web_search_requests": 1}}
text = {"type": "text", "text": "Rain."}
message = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": first,
}
ended = {"stop_reason": "end_turn", "stop_sequence": None}
events = [
    {"type": "message_start", "message": message},
    {"type": "content_block_start", "index": 0, "content_block": {**text, "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text["text"]}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": ended, "usage": last},
    {"type": "message_stop"},
]


def answer(request: httpx2.Request) -> httpx2.Response:
    if json.loads(request.content).get("stream"):
        lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=lines)
    return httpx2.Response(200, json={**message, **ended, "content": [text], "usage": last})


def ask(*, stream: bool) -> tuple[int, int]:
    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    messages = anthropic.Anthropic(api_key="none", http_client=http).messages
    request = {"model": message["model"], "max_tokens": 1_000, "messages": [{"role": "user", "content": "Weather?"}]}
    if not stream:
        usage = messages.create(**request).usage
    else:
        with messages.stream(**request) as streamed:
            usage = streamed.get_final_message().usage
    return usage.input_tokens, usage.output_tokens


module, *names = sys.argv[1:]
spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
importlib.import_module(module).AnthropicInstrumentor().instrument(tracer_provider=provider)
for stream in (False, True):
    assert ask(stream=stream) == (12_000, 600), "the SDK counts otherwise now"
    (span,) = spans.get_finished_spans()
    print(*(span.attributes[name] for name in names))
    spans.clear()
PYTHON
usage() { "$folder/venv/bin/python" "$folder/spans.py" "$@"; }
of_opentelemetry=$(usage opentelemetry.instrumentation.anthropic gen_ai.usage.input_tokens gen_ai.usage.output_tokens)
of_openinference=$(usage openinference.instrumentation.anthropic llm.token_count.prompt llm.token_count.completion)
printf 'opentelemetry, unstreamed and streamed:\n%s\n' "$of_opentelemetry"
printf 'openinference, unstreamed and streamed:\n%s\n' "$of_openinference"
[ "$of_openinference" = $'12000 600\n12000 600' ] || { echo "openinference counts otherwise now"; exit 1; }
[ "$of_opentelemetry" = $'12000 600\n2000 604' ] || { echo "opentelemetry counts otherwise now"; exit 1; }

#!/usr/bin/env bash
# Found with: langfuse 5.0.4, langchain-openai 1.7.4, langchain-core 1.8.3, openai 3.57.0, Python 3.11.
#
# One would guess: the usage that Langfuse's LangChain callback records is a partition of the tokens, whatever service tier
# OpenAI says that it served: the kinds beside "total" sum up to it, and "input" is what was neither cached nor otherwise named.
#
# Seen: langchain-openai names the tokens of a flex or priority call after the tier ("flex", "flex_cache_read"). The callback
# subtracts what is named from "input" and "output", but leaves out names that begin with "priority". So of one usage, 1,000
# tokens in (200 cached) and 500 out (300 of reasoning), it records input 800 and output 200 at the default tier, input 0 and
# output 0 at flex, and input 1,000 and output 500 at priority, there beside input_priority 800 and output_priority 200. The
# kinds of the priority call sum up to 3,000 of its 1,500 tokens.
#
# Why it matters: whoever prices these kinds, or adds them up, counts every token of a priority call twice; whoever reads
# "input" and "output" alone sees a flex call that used nothing. Both are the calls whose price differs from the usual one.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langfuse==5.0.4 langchain-openai==1.7.4 langchain-core==1.8.3 openai==3.57.0
"$folder/venv/bin/python" - <<'PYTHON'
import json

import httpx2
from langchain_openai import ChatOpenAI
from langfuse import Langfuse
from langfuse.langchain import CallbackHandler
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans = InMemorySpanExporter()
langfuse = Langfuse(public_key="none", secret_key="none", base_url="http://localhost", span_exporter=spans)


def recorded(tier: str) -> dict[str, int]:
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": "gpt-5",
        "service_tier": tier,
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
        "usage": {
            "prompt_tokens": 1_000,
            "completion_tokens": 500,
            "total_tokens": 1_500,
            "prompt_tokens_details": {"cached_tokens": 200},
            "completion_tokens_details": {"reasoning_tokens": 300},
        },
    }
    http = httpx2.Client(transport=httpx2.MockTransport(lambda request: httpx2.Response(200, json=answer)))
    ChatOpenAI(model="gpt-5", api_key="none", http_client=http).invoke("Yes?", config={"callbacks": [CallbackHandler()]})
    langfuse.flush()
    (span,) = spans.get_finished_spans()
    spans.clear()
    return json.loads(span.attributes["langfuse.observation.usage_details"])


seen = {}
for tier in ("default", "flex", "priority"):
    usage = recorded(tier)
    assert usage["total"] == 1_500, "the total is counted otherwise now"
    seen[tier] = (usage["input"], usage["output"], sum(usage.values()) - usage["total"])
    print(f"{tier}: {usage}, the kinds sum up to {seen[tier][2]}")
expected = {"default": (800, 200, 1_500), "flex": (0, 0, 1_500), "priority": (1_000, 500, 3_000)}
assert seen == expected, "tiers are counted otherwise now"
PYTHON

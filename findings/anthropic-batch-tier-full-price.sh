#!/usr/bin/env bash
# Found with: litellm 1.110.2 (its bundled price map), genai-prices 0.2.3, Python 3.11.
#
# One would guess: a reply that says itself at which tier it was served is priced at that tier, by a library that reads the
# tier of replies and has the tier's prices.
#
# Seen: litellm's completion_cost() reads service_tier of a reply: gpt-5 at "flex" costs half. The usage of a message from
# Anthropic's batches says service_tier "batch", and litellm's entry of claude-sonnet-4-6 has prices for batches, at half; but
# the message costs the full $0.45, also with service_tier="batch" given. genai-prices says $0.45 as well, also for
# price_context={"service_tier": "batch"}: Anthropic's own word for it is no key of that context, and unknown ones are passed
# over. Only {"processing": "batch"} makes it $0.225.
#
# Why it matters: both libraries agree on twice the price, without a warning, so that comparing them finds nothing. Logs of
# evaluations and nightly jobs, which run in batches, look twice as dear as their bill.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check litellm==1.110.2 genai-prices==0.2.3
LITELLM_LOCAL_MODEL_COST_MAP=True "$folder/venv/bin/python" - <<'PYTHON'
import litellm
from genai_prices import calc_price, extract_usage

message = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [{"type": "text", "text": "Yes."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 100_000, "output_tokens": 10_000, "service_tier": "batch"},
}
completion = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_790_000_000,
    "model": "gpt-5",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
    "usage": {"prompt_tokens": 100_000, "completion_tokens": 10_000, "total_tokens": 110_000},
}

tiers = {tier: litellm.completion_cost({**completion, "service_tier": tier}) for tier in ("default", "flex")}
print("litellm, gpt-5:", tiers)
assert [f"{cost:.4f}" for cost in tiers.values()] == ["0.2250", "0.1125"], "tiers of replies are read otherwise now"

entry = litellm.model_cost["claude-sonnet-4-6"]
assert entry["input_cost_per_token_batches"] * 2 == entry["input_cost_per_token"], "the price map has changed"
said, given = litellm.completion_cost(message), litellm.completion_cost(message, service_tier="batch")
print(f"litellm, claude-sonnet-4-6 in a batch: {said:.3f}, with the tier given: {given:.3f}")

usage = extract_usage(message, provider_id="anthropic").usage
contexts = {"none": None, "service_tier": {"service_tier": "batch"}, "processing": {"processing": "batch"}}
others = {}
for name, context in contexts.items():
    price = calc_price(usage, "claude-sonnet-4-6", provider_id="anthropic", price_context=context)
    others[name] = f"{price.total_price:.3f}"
print("genai-prices, the same by the key of its context:", others)
assert (f"{said:.3f}", f"{given:.3f}") == ("0.450", "0.450"), "litellm prices batches otherwise now"
assert list(others.values()) == ["0.450", "0.450", "0.225"], "genai-prices prices batches otherwise now"
PYTHON

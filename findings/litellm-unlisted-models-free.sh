#!/usr/bin/env bash
# Found with: litellm 1.110.2 (its bundled price map), genai-prices 0.2.3, Python 3.11.
#
# One would guess: a model that litellm's price map does not list has no cost: cost_per_token() raises, as its error
# "This model isn't mapped yet" says. A cost of 0 then means that a call was free.
#
# Seen: for unlisted names that look like a known family, rules that tell what such models can do (context, tools, vision)
# stand in for the missing entry. They hold no prices, and a missing price counts as 0. So claude-opus-4-1, which the map no
# longer lists, costs $0.00 with no error and no warning, as do claude-sonnet-4.5 (a dot in place of the hyphen) and
# openai/o1-mini, while claude-3-opus-20240229, openai/gpt-4.5-preview and deepseek/deepseek-v9 raise. Which of the two
# happens depends on the name alone. genai-prices still has $15 per million input tokens for claude-opus-4-1.
#
# Why it matters: after an upgrade of the library, whoever prices an older log again gets dollars for some models, errors for
# others, and zeros that sum up as savings for the dearest one. A budget never stops a model whose name is spelt slightly off.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check litellm==1.110.2 genai-prices==0.2.3
LITELLM_LOCAL_MODEL_COST_MAP=True "$folder/venv/bin/python" - <<'PYTHON'
import litellm
from genai_prices import Usage, calc_price

MILLION = 1_000_000


def dollars(model: str) -> str:
    try:
        spent = litellm.cost_per_token(model=model, prompt_tokens=MILLION, completion_tokens=0)
    except Exception as problem:  # its class says what kind
        return type(problem).__name__
    return f"{sum(spent):.2f}"


names = {
    "claude-opus-4-5": "5.00",
    "claude-sonnet-4-5": "3.00",
    "claude-opus-4-1": "0.00",
    "claude-sonnet-4.5": "0.00",
    "openai/o1-mini": "0.00",
    "anthropic/claude-3-opus-20240229": "ModelNotMappedError",
    "openai/gpt-4.5-preview": "ModelNotMappedError",
    "deepseek/deepseek-v9": "ModelNotMappedError",
}
seen = {name: dollars(name) for name in names}
for name, cost in seen.items():
    listed = name in litellm.model_cost
    print(f"{name}: {cost} ({'listed' if listed else 'not listed'})")
    assert listed == (names[name] not in ("0.00", "ModelNotMappedError")), "the price map has changed"
other = calc_price(Usage(input_tokens=MILLION), "claude-opus-4-1", provider_id="anthropic").total_price
print(f"claude-opus-4-1 of genai-prices: {other:.2f}")
assert seen == names, "unlisted models are priced otherwise now"
assert other == 15, "the other list has changed"
PYTHON

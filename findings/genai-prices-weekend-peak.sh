#!/usr/bin/env bash
# Found with: genai-prices 0.2.3 (its bundled price list), Python 3.11.
#
# One would guess: DeepSeek's dearer hours are those of its price page, which names hours of weekdays, so that a call on a
# Saturday has the standard price.
#
# Seen: the entry of deepseek-v4-pro has hours and no days. Saturday at 02:00 UTC costs $1.32 per million input tokens, as
# Friday at 02:00 does; at 12:00 UTC either day costs $0.66.
#
# Why it matters: whoever prices logged calls by their time doubles seven hours of every weekend, and a budget that is
# checked against these prices stops too early.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check genai-prices==0.2.3
"$folder/venv/bin/python" - <<'PYTHON'
from datetime import datetime, timezone

from genai_prices import Usage, calc_price


def dollars(day: int, hour: int) -> str:
    at = datetime(2026, 11, day, hour, tzinfo=timezone.utc)
    usage = Usage(input_tokens=1_000_000, output_tokens=0)
    found = calc_price(usage, "deepseek-v4-pro", provider_id="deepseek", genai_request_timestamp=at)
    return f"{found.input_price:.2f}"


friday, saturday = [dollars(27, 2), dollars(27, 12)], [dollars(28, 2), dollars(28, 12)]
print("Friday at 02:00 and 12:00 UTC:", *friday)
print("Saturday at 02:00 and 12:00 UTC:", *saturday)
assert friday == ["1.32", "0.66"], "the list has changed"
assert saturday == friday, "weekends are told apart now"
PYTHON

#!/usr/bin/env bash
# Found with: genai-prices 0.2.3, Python 3.11.
#
# One would guess: the counts of an Anthropic usage object can be handed over under the library's names for them
# (input_tokens, cache_read_tokens, cache_write_tokens), since provider_id="anthropic" is given beside them.
#
# Seen: input_tokens of the library includes what the cache gave and took, for every provider; Anthropic's does not. With a
# warm cache the call raises ValueError ("cache_read_tokens (128955) cannot exceed input_tokens (5)"). With a cache that is
# smaller than the fresh input nothing is raised, and the fresh tokens that the cached ones displace are not charged:
# 10,000 fresh and 9,000 cached tokens of claude-sonnet-4-5 cost $0.0057 in place of $0.0327.
#
# Why it matters: the price of such a call is wrong by a factor of up to ten, in silence, exactly where caches are half warm.
# extract_usage() of the library sums the counts first; only who fills Usage by hand meets this.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check genai-prices==0.2.3
"$folder/venv/bin/python" - <<'PYTHON'
from genai_prices import Usage, calc_price


def dollars(**usage: int) -> str:
    return f"{calc_price(Usage(**usage), 'claude-sonnet-4-5', provider_id='anthropic').total_price:.4f}"


try:
    print(dollars(input_tokens=5, cache_read_tokens=128_955, cache_write_tokens=1_253, output_tokens=100))
    raise SystemExit("a warm cache as Anthropic says it is taken now")
except ValueError as problem:
    print("ValueError:", problem)
as_said = dollars(input_tokens=10_000, cache_read_tokens=9_000, output_tokens=0)
in_all = dollars(input_tokens=19_000, cache_read_tokens=9_000, output_tokens=0)
print("as Anthropic says it:", as_said, "- with the cached tokens added:", in_all)
assert (as_said, in_all) == ("0.0057", "0.0327"), "the counts are read otherwise now"
PYTHON

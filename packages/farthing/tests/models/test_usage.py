"""One reading of any usage, held to two price libraries and to what each call costs."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import UnpricedModelError
from farthing.models.base import Usage
from farthing.models.prices import PriceTable, Rates, TokenPrice, charge_nano
from farthing.models.usage import largest, read_usage, usage_in

MONEY = Path(__file__).parents[5] / "shared/cases/money/usages.jsonl"
Found = dict[str, Any]
NOT_IN_LISTS: Mapping[str, str] = {
    "or-cost": "the reply says what was billed, at a price of Azure's; a list has another seller's",
}
"""Usages whose cost no list has, and why."""
ELSEWHERE: Mapping[str, str] = {
    "an-1h": "platform.claude.com, prompt caching: an hour is twice the input; 1.83.0 lists none",
    "an-200k": "platform.claude.com, release notes: dearer above 200,000; 1.110.2 lists it no more",
    "mi-cached": "mistral.ai/pricing: the alias moved to a dearer model after 1.83.0",
    "fw-cached": "docs.fireworks.ai, pricing: cached input has a price; 1.83.0 lists none",
    "ds-both": "api-docs.deepseek.com, pricing: half outside peak hours; 1.110.2 lists the peak's",
    "or-cost": "the reply says what was billed; a list has what OpenAI takes",
}
"""Where LiteLLM's table (1.83.0 or 1.110.2) says something else, and the source that is right."""
SELLERS = {
    "google": "gemini",
    "x-ai": "xai",
    "fireworks": "fireworks_ai",
    **{name: name for name in ("mistral", "groq", "deepseek", "perplexity", "azure", "openrouter")},
}


def usages() -> list[Found]:
    if not MONEY.exists():
        return []
    return [json.loads(line) for line in MONEY.read_text().splitlines()]


cases = pytest.mark.parametrize("case", usages(), ids=lambda case: case["id"])
needs_shared = pytest.mark.skipif(not MONEY.exists(), reason="needs ../shared/cases/money")


def at(case: Found) -> datetime:
    return datetime.fromisoformat(case.get("at", "2026-11-27T12:00:00Z"))


def read(case: Found) -> Usage:
    found = read_usage(case["usage"], case["reply_also_says"])
    assert found is not None
    return found


@needs_shared
@cases
def test_each_usage_costs_what_it_does(case: Found) -> None:
    price = PriceTable().find(case["model"], provider=case["provider"])
    assert charge_nano(price, read(case), 0.0, at(case)) == round(case["usd"] * 1e9)


@needs_shared
@cases
def test_each_usage_costs_what_genai_prices_says(case: Found) -> None:
    """Its own arithmetic of units, at the counts that were read."""
    used, counts = read(case), dict(read(case).units)
    told = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cached_tokens,
        "cache_write_tokens": used.cache_writes + used.cache_writes_hour,
        "cache_write_1h_tokens": used.cache_writes_hour,
        "input_audio_tokens": used.audio_input,
        "output_audio_tokens": used.audio_output,
        "output_reasoning_tokens": used.reasoning_tokens or 0,
        "output_citation_tokens": counts.get("output_citation_tokens", 0),
        "web_searches": counts.get("web_searches", 0),
    }
    listed = calc_price(
        PricedUsage(**told),
        case["model"],
        provider_id=case["provider"],
        genai_request_timestamp=at(case),
        price_context=None if used.tier is None else {"service_tier": used.tier},
    ).total_price
    same = abs(listed - Decimal(str(case["usd"]))) < Decimal("1e-9")
    assert same != (case["id"] in NOT_IN_LISTS)


@needs_shared
@pytest.mark.extras("litellm")
@cases
def test_each_usage_costs_what_litellm_says(case: Found) -> None:
    """Its own table, by its own words; what it has not listed yet it says nothing of."""
    spec = find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    table = json.loads(
        Path(spec.origin).with_name("model_prices_and_context_window_backup.json").read_text()
    )
    names = (f"{SELLERS.get(case['provider'], '')}/{case['model']}", case["model"])
    found = next((table[name] for name in names if name in table), None)
    if found is not None and case["id"] not in ELSEWHERE:
        assert by_litellm(read(case), found) == pytest.approx(case["usd"], abs=1e-9)


def by_litellm(used: Usage, table: Found) -> float:
    """Return dollars at a line of LiteLLM's table."""
    steps = [f"_above_{n}k_tokens" for n in (200, 272) if used.input_tokens > n * 1_000]
    ends = [*steps, *([f"_{used.tier}"] if used.tier else []), ""]

    def rate(name: str, *others: str) -> float:
        found = (table.get(one + end) for one in (name, *others) for end in ends)
        return next((float(usd) for usd in found if usd is not None), 0.0)

    read, wrote = "input_cost_per_token", "output_cost_per_token"
    kept = "cache_creation_input_token_cost"
    units = dict(used.units)
    thoughts = (used.reasoning_tokens or 0) if "output_cost_per_reasoning_token" in table else 0
    cited, sound, spoken = (
        units.get("output_citation_tokens", 0),
        used.audio_input,
        used.audio_output,
    )
    fresh = used.input_tokens - used.cached_tokens - used.cache_writes - used.cache_writes_hour
    searches: Found = table.get("search_context_cost_per_query") or {}
    return float(
        (fresh - sound) * rate(read)
        + sound * rate("input_cost_per_audio_token", read)
        + used.cached_tokens * rate("cache_read_input_token_cost", read)
        + used.cache_writes * rate(kept, read)
        + used.cache_writes_hour * rate(f"{kept}_above_1hr", kept, read)
        + (used.output_tokens - spoken - thoughts - cited) * rate(wrote)
        + spoken * rate("output_cost_per_audio_token", wrote)
        + thoughts * rate("output_cost_per_reasoning_token")
        + cited * rate("citation_cost_per_token", wrote)
        + units.get("web_searches", 0) * searches.get("search_context_size_medium", 0.0)
    )


KINDS: list[tuple[str, Found, Found, Usage]] = [
    (
        "Langfuse, sums beside their parts",
        {
            "input": 100, "output": 10, "cache_read_input_tokens": 9000,
            "cache_creation_input_tokens": 900,
            "cache_creation_ephemeral_5m_input_tokens": 900,
        },
        {},
        Usage(10_000, 10, cached_tokens=9_000, cache_writes=900),
    ),
    (
        "Langfuse, names of its own",
        {"input": 100, "output": 10, "input_cache_read": 9000, "input_cache_creation": 900},
        {},
        Usage(10_000, 10, cached_tokens=9_000, cache_writes=900),
    ),
    (
        "Inspect, of which the total tells",
        {
            "input_tokens": 1_000, "output_tokens": 100, "total_tokens": 10_100,
            "input_tokens_cache_read": 9_000,
        },
        {},
        Usage(10_000, 100, cached_tokens=9_000),
    ),
    (
        "LiteLLM, all within the prompt",
        {
            "prompt_tokens": 98_805, "completion_tokens": 500, "total_tokens": 99_305,
            "cache_read_input_tokens": 66_360,
            "cache_creation_input_tokens": 32_435,
            "prompt_tokens_details": {"cached_tokens": 66_360, "cache_creation_tokens": 32_435},
        },
        {},
        Usage(98_805, 500, cached_tokens=66_360, cache_writes=32_435),
    ),
    (
        "Gemini",
        {
            "promptTokenCount": 1_000, "candidatesTokenCount": 50, "thoughtsTokenCount": 200,
            "cachedContentTokenCount": 800, "toolUsePromptTokenCount": 30,
            "totalTokenCount": 1_280,
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 900},
                {"modality": "AUDIO", "tokenCount": 100},
            ],
            "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 80}],
        },
        {},
        Usage(
            1_030,
            250,
            cached_tokens=800,
            reasoning_tokens=200,
            audio_input=100,
            audio_cached=80,
        ),
    ),
    (
        "Bedrock, two times to live",
        {
            "inputTokens": 10, "outputTokens": 20, "totalTokens": 1_330,
            "cacheReadInputTokens": 1_000, "cacheWriteInputTokens": 300,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 200}, {"ttl": "5m", "inputTokens": 100}],
        },
        {},
        Usage(1_310, 20, cached_tokens=1_000, cache_writes=100, cache_writes_hour=200),
    ),
    (
        "Kimi, in the choice",
        {},
        {"choices": [{"usage": {"prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4}}]},
        Usage(9, 2, cached_tokens=4),
    ),
    (
        "Groq's last chunk",
        {},
        {"x_groq": {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}},
        Usage(9, 2),
    ),
    (
        "floats and texts",
        {"prompt_tokens": 1000.0, "completion_tokens": "9"},
        {},
        Usage(1_000, 9),
    ),
    (
        "Cohere is paid by what it bills",
        {
            "billed_units": {"input_tokens": 5, "output_tokens": 6, "search_units": 2},
            "tokens": {"input_tokens": 50, "output_tokens": 60},
        },
        {},
        Usage(5, 6, units=(("rerank_searches", 2),)),
    ),
    (
        "Codex, of which the total tells",
        {
            "input_tokens": 1_000, "cached_input_tokens": 900, "output_tokens": 10,
            "reasoning_output_tokens": 4, "total_tokens": 1_010,
        },
        {},
        Usage(1_000, 10, cached_tokens=900, reasoning_tokens=4),
    ),
    (
        "a part that is more than the prompt stands beside it",
        {
            "prompt_tokens": 10, "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 64},
        },
        {},
        Usage(74, 2, cached_tokens=64),
    ),
    (
        "iterations that are not in the sum",
        {
            "input_tokens": 10, "output_tokens": 5,
            "iterations": [
                {"type": "compaction", "input_tokens": 900, "output_tokens": 90},
                {"type": "message", "input_tokens": 10, "output_tokens": 5},
            ],
        },
        {},
        Usage(910, 95),
    ),
    (
        "tools of a server, free ones among them",
        {
            "prompt_tokens": 10, "completion_tokens": 2,
            "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 5},
        },
        {"service_tier": "default"},
        Usage(10, 2, units=(("web_searches", 2),)),
    ),
    (
        "the key is the caller's own at another seller",
        {
            "prompt_tokens": 10, "completion_tokens": 2, "cost": 0.001, "is_byok": True,
            "cost_details": {"upstream_inference_cost": 0.02},
        },
        {},
        Usage(10, 2, billed_nano=21_000_000),
    ),
    ("a zero says not what was billed", {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0}, {},
     Usage(1, 1)),
    (
        "no count of output",
        {"prompt_tokens": 1_000, "completion_tokens": None, "total_tokens": 1_000},
        {},
        Usage(1_000, 0, unknown=("output_tokens",)),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("usage", "beside", "right"), [one[1:] for one in KINDS],
                         ids=[one[0] for one in KINDS])  # fmt: skip
def test_every_tools_words_are_read(usage: Found, beside: Found, right: Usage) -> None:
    assert read_usage(usage, beside) == right
    reply = json.dumps({"usage": usage, **beside}).encode()
    assert usage_in(reply) == right


def test_what_is_no_usage_says_nothing() -> None:
    said: Any
    for said in (None, [], 5, "many", {}, {"total_tokens": 12}, {"prompt_tokens": "many"}):
        assert read_usage(said) is None
    assert usage_in(b'{"usage": ') is None


def test_the_first_and_the_last_word_of_a_stream_count_the_larger_of_each() -> None:
    first = read_usage({"input_tokens": 5, "cache_read_input_tokens": 1_000, "output_tokens": 1})
    last = read_usage({"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 99})
    both = Usage(1_005, 99, cached_tokens=1_000)
    assert largest(first, last) == largest(last, first) == both
    assert largest(first, read_usage({"output_tokens": 99})) == both


FULL: Found = {
    "prompt_tokens": 1_000,
    "completion_tokens": 100,
    "total_tokens": 1_100,
    "prompt_tokens_details": {"cached_tokens": 300, "audio_tokens": 50},
    "completion_tokens_details": {"reasoning_tokens": 10},
}
KNOWN = {
    *("prompt", "input", "completion", "output", "total", "cached", "cache", "reasoning"),
    *("thought", "thoughts", "thinking", "tokens", "billed_units", "iterations", "cost"),
}
words = st.lists(
    st.sampled_from([*"abxyz", "foo", "bar", "details", "count", "new", "tool", "image", "audio"]),
    min_size=1,
    max_size=3,
).map("_".join)
values = st.recursive(
    st.one_of(st.integers(-5, 10**6), st.floats(), st.text(max_size=5), st.none(), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(words, inner, max_size=2)),
    max_leaves=5,
)
PRICES = [
    TokenPrice((Rates(Decimal(3), Decimal(15), 0, Decimal("0.3")),)),
    PriceTable().find("gpt-audio", provider="openai"),
    PriceTable().find("claude-sonnet-4-5", provider="anthropic"),
]


@pytest.mark.slow
@given(
    st.dictionaries(words.filter(lambda name: name not in KNOWN), values, max_size=4),
    st.sampled_from(["", "prompt_tokens_details", "completion_tokens_details"]),
    st.sampled_from(PRICES),
)
@settings(deadline=None, max_examples=200)
def test_an_unknown_field_never_lowers_a_charge(more: Found, place: str, price: Any) -> None:
    inner = {**more, **(FULL[place] if place else FULL)}
    usage = {**FULL, place: inner} if place else inner
    before, now = (charge_nano(price, read_usage(one) or Usage(0, 0), 0.0) for one in (FULL, usage))
    assert before is None or now is None or now >= before


@given(st.sampled_from(sorted(FULL)), st.sampled_from([None, -3, "x", {}, [], float("nan")]))
def test_a_count_that_cannot_be_read_is_never_free(name: str, value: Any) -> None:
    """At most its total tells, and else nobody."""
    price, full = PRICES[1], read_usage(FULL)
    assert full is not None
    found = read_usage({**FULL, name: value})
    paid = None if found is None else charge_nano(price, found, 0.0)
    right = charge_nano(price, full, 0.0)
    if name in ("prompt_tokens", "completion_tokens"):
        assert paid in (None, right)
    elif name != "prompt_tokens_details":  # without which sound is text
        assert paid == right


def hour(day: str, clock: str) -> datetime:
    return datetime.fromisoformat(f"{day}T{clock}:00+00:00")


@pytest.mark.parametrize(
    ("when", "per_million"),
    [
        (hour("2026-08-10", "02:00"), "0.435"),  # before the hours began
        (hour("2026-11-27", "00:59"), "0.66"),
        (hour("2026-11-27", "01:00"), "1.32"),
        (hour("2026-11-27", "05:00"), "0.66"),
        (hour("2026-11-27", "09:59"), "1.32"),
        (hour("2026-11-27", "10:00"), "0.66"),
        (hour("2026-11-28", "02:00"), "0.66"),  # a Saturday in Beijing
        (hour("2026-11-29", "17:30"), "0.66"),  # Monday there, in no dear hour
        (hour("2026-11-30", "02:00"), "1.32"),
    ],
)
def test_a_price_is_that_of_the_calls_time(when: datetime, per_million: str) -> None:
    """By the pricing page of DeepSeek: double from 1 to 4 and from 6 to 10, UTC, on weekdays."""
    price = PriceTable().find("deepseek-v4-pro", provider="deepseek")
    assert price is not None
    nano = price.cost_nano(Usage(1_000_000, 0), 0.0, when)
    assert nano == Decimal(per_million) * 10**9


def test_the_bound_is_that_of_the_dearest_time_that_a_call_can_reach() -> None:
    price = PriceTable().find("deepseek-v4-pro", provider="deepseek")
    assert price is not None
    used = Usage(1_000_000, 0)
    before = hour("2026-11-27", "00:59")
    assert price.largest_nano(used, 30.0, before) == 660_000_000
    assert price.largest_nano(used, 120.0, before) == 1_320_000_000
    assert price.largest_nano(used, 3_600.0 * 3, hour("2026-11-27", "03:59")) == 1_320_000_000
    # A price that cannot be reached again on that day counts no more.
    assert price.largest_nano(used, 120.0, hour("2026-11-27", "10:00")) == 660_000_000


def test_a_price_with_hours_reads_alike_all_day() -> None:
    assert "at other hours" in str(PriceTable().find("deepseek-v4-pro", provider="deepseek"))
    assert "hours" not in str(PriceTable().find("gpt-4o", provider="openai"))


TIERS = [None, "flex", "priority", "batch"]


@given(st.integers(0, 300_000), st.integers(0, 5_000), st.data())
@settings(deadline=None, max_examples=60)
def test_no_call_costs_more_than_its_bound(read: int, written: int, data: st.DataObject) -> None:
    """Whatever of it was cached, written unasked, or sound where it may be."""
    model = data.draw(st.sampled_from(["gpt-5.6-sol", "gpt-audio", "gpt-5", "claude-sonnet-4-5"]))
    provider = "anthropic" if model.startswith("claude") else "openai"
    price = PriceTable().find(model, provider=provider)
    assert price is not None
    tier = data.draw(st.sampled_from([t for t in TIERS if not price.unpriced(Usage(0, 0, tier=t))]))
    cached = data.draw(st.integers(0, read))
    kept = data.draw(st.integers(0, read - cached))
    asks = model.startswith("claude")
    sound = data.draw(st.integers(0, read - cached - kept)) if model == "gpt-audio" else 0
    used = Usage(
        read,
        written,
        cached_tokens=cached,
        cache_writes=0 if asks or model == "gpt-audio" else kept,
        cache_writes_hour=kept if asks else 0,
        audio_input=sound,
        tier=tier,
    )
    most = Usage(
        read, written, cache_writes_hour=read if asks else 0, audio_input=sound and read, tier=tier
    )
    assert price.cost_nano(used, 1.0) <= price.largest_nano(most, 1.0)


def test_a_count_that_nobody_knows_the_price_of_is_no_price() -> None:
    own = TokenPrice((Rates(Decimal(1), Decimal(2)),))
    for used, name in (
        (Usage(9, 9, audio_input=3), "audio_input"),
        (Usage(9, 9, audio_output=3), "audio_output"),
        (Usage(9, 9, units=(("web_searches", 1),)), "web_searches"),
        (Usage(9, 9, units=(("quantum_requests", 1),)), "quantum_requests"),
        (Usage(9, 9, tier="priority"), "service_tier priority"),
    ):
        assert own.unpriced(used) == (name,)
        assert charge_nano(own, used, 0.0) is None
    listed = PriceTable().find("gpt-4", provider="openai")
    assert listed is not None
    assert listed.unpriced(Usage(9, 9, tier="priority")) == ("service_tier priority",)
    groq = PriceTable().find("llama-3.1-8b-instant", provider="groq")
    flex = Usage(1_000, 0, tier="flex")
    assert charge_nano(groq, flex, 0.0) == charge_nano(groq, replace(flex, tier=None), 0.0)
    # What is cheaper than the standard tier at most costs what that does.
    assert charge_nano(own, Usage(9, 9, tier="flex"), 0.0) == 27_000


def test_what_nobody_can_bound_is_refused_by_its_name() -> None:
    for model, provider, name in (
        ("sonar-deep-research", "perplexity", "web_searches"),
        ("voxtral-small-24b-2507", "mistral", "audio_hours"),
    ):
        price = PriceTable().find(model, provider=provider)
        assert price is not None
        with pytest.raises(UnpricedModelError, match=name):
            price.largest_nano(Usage(9, 9), 1.0)
        assert any(one.startswith(name) for one in price.unpriced(Usage(9, 9)))


@pytest.mark.slow
def test_every_listed_price_is_counted_or_refused() -> None:
    """No price of the list is left out in silence: it changes a cost, a bound, or is named."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    from farthing.models import price_list  # noqa: PLC0415

    now, passed = datetime.now(UTC), 0
    counts = dict.fromkeys(price_list._KINDS.values(), 1)
    for provider in get_snapshot().providers:
        for model in provider.models:
            price = PriceTable().find(model.id, provider=provider.id)
            if price is None or not isinstance(price, price_list.ListPrice):
                continue
            found = price.at(now)
            assert found is not None
            named = {name for name, value in vars(model.get_prices(now)).items() if value}
            known = {name for name, _ in (*found.rates[0].more, *found.units)} | {*found.needs}
            beyond = named - {*price_list._PLAIN, "requests_kcount", "cache_image_read_mtok"}
            said = {price_list._KINDS.get(n, n.removesuffix("_kcount")) for n in beyond}
            assert said <= known, model.id
            passed += bool(said)
    assert passed > 50
    assert counts


def test_a_billed_price_is_taken_and_the_list_can_differ() -> None:
    price = PriceTable().find("gpt-4o", provider="openai")
    assert price is not None
    used = Usage(1_000, 100, billed_nano=4_200_000)
    assert charge_nano(price, used, 0.0) == 4_200_000
    assert charge_nano(price, replace(used, billed_nano=None), 0.0) == 3_500_000


def test_dated_prices_are_those_of_the_day() -> None:
    price = PriceTable().find("gpt-5.6-sol", provider="openai")
    assert price is not None
    day = datetime(2026, 8, 21, tzinfo=UTC)
    used = Usage(1_000, 0)
    assert price.cost_nano(used, 0.0, day - timedelta(seconds=1)) == 5_000_000
    assert price.cost_nano(used, 0.0, day) == 4_000_000


def test_what_nobody_wrote_is_no_count() -> None:
    assert read_usage({"prompt_tokens": 0, "completion_tokens": 3}) == Usage(
        0, 3, unknown=("input_tokens",)
    )
    assert read_usage({"requests": 1, "input_tokens": 9, "output_tokens": 3}) == Usage(9, 3)
    assert read_usage({"input_token_count": 9, "generated_token_count": 3}) == Usage(9, 3)

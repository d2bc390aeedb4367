"""`farthing traces reprice`, and prices of caches on the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Farthing = Callable[..., Any]
CALLS = [
    {"model": "gpt-4.1", "input_tokens": 10_000, "output_tokens": 100, "cost_usd": 0.0208},
    {
        "model": "house",
        "input_tokens": 1_000,
        "output_tokens": 10,
        "cost_usd": 0.001,
        "cached_tokens": 900.0,
        "tier:flex": 1.0,
        "unit:web_searches": 0.0,
    },
    {"model": "nobody", "input_tokens": 1_000, "output_tokens": 10, "cost_usd": 0.5},
    {"model": "gpt-4o", "cost_usd": 0.25},
]


@pytest.fixture
def store(farthing: Farthing, tmp_path: Path) -> str:
    calls = [{"round": 1, "role": one["model"], "answer": "4", **one} for one in CALLS]
    trace = {"id": "q", "question": "2 + 2?", "gold": ["4"], "independent": True, "calls": calls}
    Path("a.jsonl").write_text(json.dumps(trace) + "\n")
    assert farthing("traces", "import", "a.jsonl", "--store", "a.db").code == 0
    return "a.db"


def test_a_store_says_what_it_would_cost_today(farthing: Farthing, store: str) -> None:
    before = Path(store).read_bytes()
    done = farthing("traces", "reprice", store, "--price", "house=1,2,0.1", "--json")
    found = json.loads(done.out)
    assert found["gpt-4.1"] == {
        "calls": 1,
        "priced": 1,
        "dearer": 0,
        "cheaper": 0,
        "recorded_usd": 0.0208,
        "today_usd": 0.0208,
    }
    assert found["house"]["today_usd"] == (100 * 1 + 900 * 0.1 + 10 * 2) / 1e6
    assert found["house"]["cheaper"] == 1
    assert found["nobody"]["priced"] == found["gpt-4o"]["priced"] == 0
    assert Path(store).read_bytes() == before
    shown = farthing("traces", "reprice", store, "--price", "house=1,2,0.1")
    assert "-79.0%" in shown.out
    assert "nobody: 1 call without a cost before or now" in " ".join(shown.err.split())


@pytest.mark.parametrize(
    ("price", "said"),
    [
        ("gpt-4.1=0.000002,0.000008", "looks like a price of one token"),
        ("gpt-4.1=2", "is no MODEL=IN,OUT"),
        ("gpt-4.1=2,8,0.5,2,4,1", "is no MODEL=IN,OUT"),
        ("gpt-4.1=2,x", "is no MODEL=IN,OUT"),
    ],
)
def test_a_price_that_cannot_be_meant_is_refused(
    farthing: Farthing, store: str, price: str, said: str
) -> None:
    done = farthing("traces", "reprice", store, "--price", price)
    assert done.code == 2
    assert said in " ".join(done.err.split())


def test_what_a_call_took_survives_the_way_through_a_file(farthing: Farthing, store: str) -> None:
    assert farthing("traces", "export", "--store", store, "--out", "b.jsonl").code == 0
    assert farthing("traces", "import", "b.jsonl", "--store", "b.db").code == 0
    lines = [farthing("traces", "reprice", name, "--json").out for name in (store, "b.db")]
    assert lines[0] == lines[1]
    house = json.loads(Path("b.jsonl").read_text())["calls"][1]
    assert (house["cached_tokens"], house["tier:flex"]) == (900, 1)

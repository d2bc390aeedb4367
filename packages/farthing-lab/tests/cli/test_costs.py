"""What calls cost, as people write it, and what a command says where nobody knows."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farthing.traces.jsonl import read_traces

Farthing = Callable[..., Any]
Refused = Callable[..., str]
AGREEMENT = ("--promise", "agreement", "--epsilon", 0.5, "--delta", 0.2, "--reference", "large")
WITHOUT = "no call of these traces has a cost, so nothing is known of savings"


def table(
    n: int, small: str = "$0.0001525", large: str = "$0.0125", column: str = "Cost ($)"
) -> str:
    """Return a table of n questions that two models answer alike."""
    rows = [f"Question;Model;Answer;Is correct;{column}"]
    for i in range(n):
        rows += [f"How much is {i}?;small;{i % 3};yes;{small}"]
        rows += [f"How much is {i}?;large;{i % 3};yes;{large}"]
    return "\n".join(rows) + "\n"


def costs(farthing: Farthing, text: str, *options: str) -> list[float | None]:
    """Return the costs of the first question of a table as `farthing traces import` stores them."""
    Path("calls.csv").write_text(text, encoding="utf-8")
    for old in Path().glob("a.db*"):
        old.unlink()
    done = farthing("traces", "import", "calls.csv", "--store", "a.db", *options)
    assert done.code == 0, done.err
    assert farthing("traces", "export", "--store", "a.db", "--out", "out.jsonl").code == 0
    return [call.cost_usd for call in read_traces("out.jsonl")[0].calls]


@pytest.mark.parametrize(
    "column",
    [
        "Cost ($)", "cost ($)", "Cost (USD)", "COST_USD", "cost-usd", "costUsd", "$ cost", "Cost $",
        "Cost [US$]", "Cost in US dollars", "Total Cost", "total_cost_usd", "Price", "price (USD)",
        "spend", "USD", "Cost per call ($)",
    ],
)  # fmt: skip
def test_a_column_of_costs_is_read_as_people_name_it(farthing: Farthing, column: str) -> None:
    assert costs(farthing, table(1, column=column)) == [0.0001525, 0.0125]


@pytest.mark.parametrize(
    ("written", "usd"),
    [
        ("$0.0001525", 0.0001525),
        ("0.0001525 USD", 0.0001525),
        ("US$ 0.25", 0.25),
        ("0.25$", 0.25),
        ("usd 1e-4", 0.0001),
        ("$1,234.50", 1234.5),
        ("1,234.50", 1234.5),
        ("123,456.5", 123456.5),
        ("0", 0.0),
        ("", None),
    ],
)
def test_an_amount_is_read_as_people_write_it(
    farthing: Farthing, written: str, usd: float | None
) -> None:
    assert costs(farthing, table(1, small=written)) == [usd, 0.0125]


@pytest.mark.parametrize(
    "written", ["0,002", "1,234", "1.234,50", "€0.01", "0.01 EUR", "-$1", "$", "12,34.5"]
)
def test_an_amount_that_may_be_another_is_refused(refused: Refused, written: str) -> None:
    Path("calls.csv").write_text(table(1, small=written), encoding="utf-8")
    said = refused("traces", "import", "calls.csv", "--store", "a.db")
    assert f"calls.csv, line 2, Cost ($): is '{written}'; it must be a number" in said


def test_cents_are_no_dollars(farthing: Farthing, refused: Refused) -> None:
    for column in ("Cost (cents)", "cost_cents", "Cost [¢]"):
        assert costs(farthing, table(1, "1.5", "250", column)) == [0.015, 2.5]
    Path("calls.csv").write_text(table(1, "1.5", "250", "Cost (cents)"))
    asked = ("traces", "import", "calls.csv", "--store", "b.db", "--column")
    said = refused(*asked, "cost=Cost (cents)")
    assert "is in another unit by its name; --column 'cost_cents=Cost (cents)'" in said
    assert farthing(*asked, "cost_cents=Cost (cents)").code == 0


@pytest.mark.parametrize(
    "column",
    [
        "Cost per 1k tokens ($)",
        "cost_per_token",
        "Price / 1M",
        "$/MTok",
        "Cost (EUR)",
        "Cost (%)",
        "Input cost ($)",
    ],
)
def test_a_price_of_tokens_or_another_currency_is_not_what_a_call_cost(
    farthing: Farthing, refused: Refused, column: str
) -> None:
    assert costs(farthing, table(1, "0.1", "1", column)) == [None, None]
    Path("calls.csv").write_text(table(30, "0.1", "1", column))
    assert WITHOUT in farthing("recommend", "--traces", "calls.csv", *AGREEMENT).err
    if "1" in column:
        said = refused(
            "traces", "import", "calls.csv", "--store", "b.db", "--column", f"cost={column}"
        )
        assert (
            "is a price of tokens by its name, not the cost of a call; --price MODEL=IN,OUT" in said
        )


def test_two_columns_of_costs_are_asked_about(farthing: Farthing, refused: Refused) -> None:
    text = table(1).replace("Cost ($)", "Cost ($);Total cost").replace(";$", ";$9;$")
    Path("calls.csv").write_text(text)
    said = refused("traces", "import", "calls.csv", "--store", "b.db")
    assert "Cost ($) and Total cost may each be what a call cost" in said
    assert "with --column 'cost=Cost ($)'" in said
    said = refused("recommend", "--traces", "calls.csv")
    assert "farthing traces import calls.csv --store traces.db" in said
    assert costs(farthing, text, "--column", "cost=Total cost") == [0.0001525, 0.0125]


@pytest.mark.parametrize(
    ("column", "seconds"),
    [
        ("latency_ms", 1.5), ("Latency (ms)", 1.5), ("duration ms", 1.5), ("durationMs", 1.5),
        ("Latency [milliseconds]", 1.5), ("Response time (ms)", 1.5), ("Latency (s)", 1500.0),
        ("latency sec", 1500.0), ("Duration (seconds)", 1500.0), ("latency", 1500.0),
    ],
)  # fmt: skip
def test_a_time_is_in_the_unit_that_its_column_names(
    farthing: Farthing, column: str, seconds: float
) -> None:
    costs(farthing, f"Question;Model;Answer;{column}\n2 + 2?;small;4;1500\n")
    assert read_traces("out.jsonl")[0].calls[0].latency_s == seconds


COMMANDS = (
    ("recommend", *AGREEMENT),
    ("compare", "--policies", "always-small", "--splits", 2, *AGREEMENT, "--out", "r"),
    ("calibrate", "--bundle", "b", *AGREEMENT),
    ("evaluate", "--bundle", "b"),
    ("train", "--policy", "always-small", "--out", "c"),
    ("study", "sweep", "--policy", "agreement-cascade", "--try", "x=1", "--out", "s"),
    ("study", "allocate", "--budget", 1),
    ("study", "explore", "--budget", 1),
)  # fmt: skip


@pytest.mark.slow
def test_nothing_is_said_to_be_saved_where_no_cost_is_known(
    farthing: Farthing, refused: Refused
) -> None:
    Path("paid.csv").write_text(table(60))
    trained = ("--policy", "always-small", "--grade", "same as large", "--out", "b")
    assert farthing("train", "--traces", "paid.csv", *trained).code == 0
    free = "every cost in these traces is 0, so nothing can be saved"
    for large, says in (("", WITHOUT), ("0", free), ("$0.01", "no call of small has a cost")):
        text = table(60, "0" if large == "0" else "", large)
        import_all(farthing, text)
        for command in COMMANDS:
            said = refused(*command, "--traces", "traces.jsonl")
            assert says in said, (command, said)
            assert "--column cost=COLUMN" in said
    import_all(farthing, table(60, "$0.00", "0"))
    said = farthing("traces", "info", "traces.jsonl").err
    assert said.endswith("of large, small is recorded at no cost, so they count as free\n")
    assert "no call" not in said
    import_all(farthing, table(60, "0", "$0.01"))  # a model that is free is known to be
    assert farthing("evaluate", "--traces", "traces.jsonl", "--bundle", "b").code == 0
    said = farthing("traces", "info", "traces.jsonl").err
    assert said == "note: every call of small is recorded at no cost, so it counts as free\n"
    import_all(farthing, table(60, "", "$0.01"))
    said = farthing("traces", "info", "traces.jsonl").err
    assert (
        said
        == "note: no call of small has a cost, so nothing is known of savings; record `cost_usd`\n"
    )


def import_all(farthing: Farthing, text: str) -> None:
    costs(farthing, text)
    Path("out.jsonl").rename("traces.jsonl")


def test_a_call_of_unknown_cost_counts_as_the_mean_of_its_model(farthing: Farthing) -> None:
    rows = [
        f"q{i},{model},4,yes,{cost}"
        for i in range(60)
        for model, cost in (("small", ("0.001", "0.003", "")[i % 3]), ("large", "0.1"))
    ]
    Path("calls.csv").write_text("\n".join(["id,model,answer,correct,cost", *rows]))
    done = farthing("traces", "info", "calls.csv")
    note = "33.3% of the calls of small have no cost; each counts as the mean of the others"
    assert f"note: {note}\n" in done.err
    assert "$6.1200 in all" in done.out
    for asked in (
        ("train", "--policy", "always-small", "--out", "b"),
        ("evaluate", "--bundle", "b"),
    ):
        assert farthing(*asked, "--traces", "calls.csv").code == 0
    found = json.loads(farthing("evaluate", "--bundle", "b", "--traces", "calls.csv", "--json").out)
    assert found["value"]["yours"]["cost_usd"] == pytest.approx(0.002, abs=3e-4)

"""`farthing try` on a table with columns of its own: what was sent is known from its texts."""

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint

Farthing = Callable[..., Any]
COLUMNS = ("prompt", "model", "response", "cost_usd", "")


def rows(n: int = 200) -> Iterator[tuple[str, ...]]:
    for number in range(n):
        yield f"Ticket {number} about billing.", "large", "Billing", "0.001", "x"


def written(path: Path, header: Sequence[str], more: Sequence[str] = ()) -> Path:
    """Write a table, as the suffix says; `more` ends each row."""
    lines = [(*row, *more) for row in rows()]
    with path.open("w") as file:
        if path.suffix == ".csv":
            csv.writer(file).writerows([header, *lines])
        else:
            records = (dict(zip(header, row, strict=True)) for row in lines)
            file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def models(endpoint: Endpoint) -> tuple[str, ...]:
    prices = ("--price", "nano=0.1,0.4", "--price", "large=2.5,10")
    return ("--models", f"{endpoint.url}#nano", *prices, "--max-cost", "1", "--sample", "20")


@pytest.mark.parametrize("name", ["plain.csv", "plain.jsonl"])
def test_a_table_is_asked_again_as_it_is(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path, name: str
) -> None:
    table = written(tmp_path / name, COLUMNS)
    assert f"Next: farthing try {table} " in farthing("recommend", table).out
    said = farthing("try", table, *models(endpoint)).err
    assert "20 of 200 logged requests, drawn alike, go to nano" in said
    assert "left out" not in said


def test_a_column_of_system_prompts_is_sent_too(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path
) -> None:
    header = (*COLUMNS, "system_prompt", "temperature")
    table = written(tmp_path / "plain.csv", header, ("One word.", "0"))
    farthing("try", table, *models(endpoint), "--yes")
    assert len(endpoint.requests) == 20
    for request in endpoint.requests:
        system, user = request["messages"]
        assert system == {"role": "system", "content": "One word."}
        assert user["content"].startswith("Ticket ")
        assert request["temperature"] == 0


def test_what_two_columns_say_of_the_system_prompt_is_not_guessed(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path
) -> None:
    said = [{"role": "system", "content": "Brief."}, {"role": "user", "content": "Hello"}]
    row = {"prompt": json.dumps(said), "model": "large", "response": "Hi", "system_prompt": "Long."}
    table = tmp_path / "plain.jsonl"
    table.write_text(json.dumps(row) + "\n")
    done = farthing("try", table, *models(endpoint))
    assert (done.code, endpoint.requests) == (2, [])
    assert "1: the log does not hold all that was sent as text" in done.err


def test_a_column_without_a_name_is_said_to_have_none(farthing: Farthing, tmp_path: Path) -> None:
    table = written(tmp_path / "plain.csv", COLUMNS)
    said = farthing("traces", "import", table, "--store", tmp_path / "t.db").err
    assert "columns that are not read: (unnamed); --column" in said

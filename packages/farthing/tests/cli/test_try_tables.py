"""`farthing try` on a table with columns of its own: what was sent is known from its texts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from ticket_tables import COLUMNS, written

Farthing = Callable[..., Any]
Refused = Callable[..., str]


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


def test_fields_of_no_trace_are_named_at_once_with_what_reads_them(
    refused: Refused, tmp_path: Path
) -> None:
    row = {"Region ??": "eu", "user_says": "Hello", "bot_reply": "Hi", "which": "large"}
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps(row) + "\n")
    said = refused("recommend", log)
    assert "line 1, Region ??, bot_reply, user_says, which: are not fields of a trace; " in said
    assert "--from table --column question=COLUMN --column model=COLUMN --column text=COLUMN" in (
        said
    )
    log.write_text(json.dumps({f"field {number:02}": 1 for number in range(20)}) + "\n")
    assert "field 10, field 11 and 8 more: are not fields" in refused("recommend", log)
    log.write_text(json.dumps({"id": "q", "Question": "?", "other": 1, "calls": []}) + "\n")
    said = refused("recommend", log)
    assert "Question, other: are not fields of a trace; remove or rename them; did you mean " in (
        said
    )


@pytest.mark.parametrize("confidence", ["95", "sure"])
def test_the_example_of_a_confidence_is_one(
    refused: Refused, tmp_path: Path, confidence: str
) -> None:
    table = written(tmp_path / "plain.csv", COLUMNS)
    said = refused("try", table, "--models", "x", "--max-cost", "1", "--confidence", confidence)
    assert said.endswith("0.9\n")


def test_models_that_name_nobody_are_refused(refused: Refused, tmp_path: Path) -> None:
    table = written(tmp_path / "plain.csv", COLUMNS)
    for none in ("", " , "):
        said = refused("try", table, "--models", none, "--max-cost", "1", "--yes")
        assert "--models names no model; give one, such as openai/gpt-4.1-nano" in said


def test_a_column_without_a_name_is_said_to_have_none(farthing: Farthing, tmp_path: Path) -> None:
    table = written(tmp_path / "plain.csv", COLUMNS)
    said = farthing("traces", "import", table, "--store", tmp_path / "t.db").err
    assert "columns that are not read: (unnamed); --column" in said

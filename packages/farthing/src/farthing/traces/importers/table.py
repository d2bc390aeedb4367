"""A table of one row a call: CSV, JSON Lines or Parquet, with whichever names its columns have.

What a column means is seen from its name and the unit in it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from shlex import quote
from typing import Any

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.traces.base import CallError
from farthing.traces.importers.base import (
    ImportedCall,
    Importer,
    ImportEvent,
    ImportNote,
    Options,
    usages_of,
)
from farthing.traces.importers.chat import (
    failure_of,
    read_prompt,
    read_reply,
)
from farthing.traces.importers.row import MOST_USD, FileRow, RowPlace, as_number, call_error
from farthing.traces.importers.source import Source
from farthing.traces.jsonl import near
from farthing.traces.system import LIMIT, parameters_of

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "sample_id", "prompt_id", "example_id", "task_id"),
    "question": ("question", "prompt", "query", "input", "instruction", "messages"),
    "model": ("model", "model_name", "model_id", "llm", "engine"),
    "answer": ("answer", "prediction", "predicted", "model_answer", "parsed_answer"),
    "text": (
        "text", "response", "reply", "output", "completion", "generation", "model_response",
        "raw_output",
    ),
    "right": ("right", "correct", "is_correct", "passed", "success"),
    "score": ("score", "grade", "accuracy", "reward"),
    "gold": (
        "gold", "target", "expected", "reference", "ground_truth", "gold_answer", "correct_answer",
        "label",
    ),
    "cost": (
        "cost", "cost_usd", "total_cost", "total_cost_usd", "cost_per_call", "cost_per_call_usd",
        "cost_per_request", "cost_per_request_usd", "call_cost", "call_cost_usd", "price",
        "price_usd", "total_price", "total_price_usd", "spend", "spend_usd", "usd",
    ),
    "cost_cents": (
        "cost_cents", "total_cost_cents", "cost_per_call_cents", "cost_per_request_cents",
        "call_cost_cents", "price_cents", "total_price_cents", "spend_cents", "cents",
    ),
    "input_tokens": ("input_tokens", "prompt_tokens", "tokens_in", "n_input_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "tokens_out", "n_output_tokens"),
    "reasoning_tokens": ("reasoning_tokens", "thinking_tokens", "thought_tokens"),
    "latency_s": (
        "latency_s", "latency", "s", "duration_s", "duration", "elapsed_s", "response_time_s",
        "time_s",
    ),
    "latency_ms": ("latency_ms", "duration_ms", "elapsed_ms", "response_time_ms", "time_ms"),
    "confidence": ("confidence", "probability"),
    "uncertainty": ("uncertainty", "entropy"),
    "asked_probability": ("asked_probability",),
    "missing_because": ("missing_because",),
    "group": ("group", "subject", "dataset", "category", "eval_name"),
    "split": ("split",),
    "cluster": (),
    "system_prompt": ("system_prompt", "system_message"),
    "parameters": ("parameters", "model_parameters"),
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "top_p": ("top_p",),
    "usage": ("usage", "usage_details", "token_usage"),
    "error": ("error", "error_message", "exception"),
    "finish_reason": ("finish_reason", "stop_reason"),
    "status": ("status",),
    "reasoning_effort": ("reasoning_effort", "effort"),
    "thinking_budget": ("thinking_budget", "budget_tokens"),
}  # fmt: skip
"""Meaning to the usual names of its column, as `plain` writes them."""
SAID = {"answer", "text", "right", "score"}
COSTS = ("cost", "cost_cents")
"""What one call cost, in dollars or in cents; a table has one of them."""
_UNITS = {
    "$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd",
    "¢": "cents", "cent": "cents", "cents": "cents",
    "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
    "ms": "ms", "msec": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
}  # fmt: skip
"""How people write a unit, to how the names above end."""
_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens")
_WIRE = {"prompt_tokens", "completion_tokens"}
_NO_ERROR = {"", "0", "false", "no", "none", "null", "nan", "{}", "[]"}
"""What columns of errors hold where there was none."""
_OF_TOKENS = {"token", "tokens", "1k", "1m", "k", "m", "mtok", "ktok", "million", "thousand"}
"""What the name of a price of tokens has, and that of a call's cost has not."""
_WORD = re.compile(r"[^\W_]+|[$¢£¥%\u20a0-\u20cf]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MONEY = re.compile(r"(?:(?:US)?\$|USD)?\s*(?P<amount>\S+?)\s*(?:\$|USD)?", re.IGNORECASE)
_GROUPED = re.compile(r"[1-9]\d{0,2}(,\d{3})+\.\d+|[1-9]\d{0,2}(,\d{3}){2,}")
"""1,234.50 and 1,234,567; of 1,234 alone nobody knows whether it is a thousand or about one."""


def columns_of(source: Source, options: Options) -> dict[str, str]:
    """Return meaning to column: as the user maps them, else by the columns' names."""
    for meaning, column in options.columns.items():
        if meaning not in COLUMNS:
            meant = near(meaning, COLUMNS)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(COLUMNS)}"
            raise InputError(f"--column {meaning}={column}: {meaning} is no such name; {hint}")
        if column not in source.fields:
            there = ", ".join(sorted(source.fields))
            raise InputError(f"{source.name}: has no column {column}; there are {there}")
        _refuse_other_unit(meaning, column)
    free = source.fields - set(options.columns.values())
    if not options.columns.keys() & {*COSTS}:
        names = {name for meaning in COSTS for name in COLUMNS[meaning]}
        found = sorted(field for field in free if plain(field) in names)
        if len(found) > 1:
            raise InputError(
                f"{source.name}: {' and '.join(found)} may each be what a call cost; say which one "
                f"is with --column {quote(f'cost={found[0]}')}"
            )
    columns = known(free) | dict(options.columns)
    for needed in (("model",), ("question", "id"), sorted(SAID)):
        if not columns.keys() & set(needed):
            raise InputError(
                f"{source.name}: no column is named {' or '.join(needed)}; map one with --column "
                f"{needed[0]}=COLUMN (there are {', '.join(sorted(source.fields))})"
            )
    return columns


def known(fields: Iterable[str]) -> dict[str, str]:
    """Return meaning to column, for columns with a usual name."""
    usual = {plain(field): field for field in sorted(fields)}
    found = {
        meaning: next((usual[name] for name in names if name in usual), None)
        for meaning, names in COLUMNS.items()
    }
    return {meaning: column for meaning, column in found.items() if column is not None}


def plain(column: str) -> str:
    """Return a column's name as `COLUMNS` has it: words, and at the end the unit, if it has one.

    >>> plain("Cost ($)"), plain("$ cost"), plain("Latency [sec]"), plain("isCorrect")
    ('cost_usd', 'cost_usd', 'latency_s', 'is_correct')
    >>> plain("Cost per 1k tokens ($)"), plain("Cost (EUR)")
    ('cost_per_1k_tokens_usd', 'cost_eur')
    """
    words = _WORD.findall(_HUMP.sub("_", column).casefold())
    units = {_UNITS[word] for word in words if word in _UNITS}
    if len(units) != 1:
        return "_".join(words)
    return "_".join([word for word in words if word not in {*_UNITS, "in", "us"}] + [*units])


def dollars(row: FileRow, column: str) -> float | None:
    """Return an amount of dollars, also one that is written with their sign or name.

    >>> from farthing.traces.importers.row import RowPlace
    >>> row = FileRow({"a": "$0.0001525", "b": "1,234.50 USD", "c": ""}, RowPlace("calls.csv", 2))
    >>> [dollars(row, column) for column in "abc"]
    [0.0001525, 1234.5, None]
    """
    value = row.find(column)[1]
    found = _MONEY.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None:
        amount = found["amount"]
        value = amount.replace(",", "") if _GROUPED.fullmatch(amount) else amount
        if as_number(value) is not None:
            row = FileRow({column: value}, row.place)
    return row.number(column, most=MOST_USD)


def _refuse_other_unit(meaning: str, column: str) -> None:
    of_cost = meaning in COSTS
    if of_cost and _OF_TOKENS & set(plain(column).split("_")):
        problem = "is a price of tokens by its name, not the cost of a call"
        raise InputError(f"--column {meaning}={column}: {problem}; --price MODEL=IN,OUT has prices")
    read_as = known([column]).keys()
    pair = COSTS if of_cost else ("latency_s", "latency_ms")
    for other in pair:
        if meaning in pair and other != meaning and other in read_as:
            raise InputError(
                f"--column {meaning}={column}: is in another unit by its name; --column "
                f"{quote(f'{other}={column}')}"
            )


def _sniff(source: Source) -> bool:
    found = known(source.fields).keys()
    return bool(found & {"id", "question"} and "model" in found and found & SAID)


def _read(source: Source, options: Options) -> Iterator[ImportEvent]:
    columns = columns_of(source, options)
    others = (name.strip() for name in source.fields - set(columns.values()))
    unread = sorted(name or "(unnamed)" for name in others if "token" not in name.casefold())
    if unread:
        yield ImportNote(
            f"columns that are not read: {', '.join(unread)}; --column NAME=COLUMN, with NAME "
            f"one of {', '.join(name for name in COLUMNS if name not in columns)}"
        )
    for row in source.rows():
        yield _recorded(row, columns, options)


TABLE = Importer(
    name="table",
    meaning="one row a call: question, model, answer, whether it is right, cost",
    sniff=_sniff,
    read=_read,
    samples=True,
    columns=tuple(COLUMNS),
)
_AS_IT_IS: Mapping[str, Callable[[FileRow, str], Any]] = {
    "group": FileRow.text, "split": FileRow.text, "cluster": FileRow.text,
    "uncertainty": FileRow.number, "missing_because": FileRow.text,
}  # fmt: skip
"""The fields of a call that are read as they are."""


def _recorded(row: FileRow, column: Mapping[str, str], options: Options) -> ImportedCall:
    def of(meaning: str) -> str:
        return column.get(meaning, f"({meaning})")

    model = row.text(of("model"))
    if model is None:
        raise row.place.refusal(column["model"], "is missing; name the model of the call")
    question, name = row.find(of("question"))[1], row.text(of("id"))
    if question is None and name is None:
        raise row.place.refusal(
            column.get("question", column.get("id", "question")),
            "is missing; give the question's text or its id",
        )
    read = {name: get(row, column[name]) for name, get in _AS_IT_IS.items() if name in column}
    score, right, gold = row.score(of("score")), row.flag(of("right")), row.inner(of("gold"))
    if not isinstance(gold, list) or not all(isinstance(answer, str) for answer in gold):
        gold = [row.text(of("gold")) or ""]
    seconds = row.seconds(of("latency_ms"))
    cents = row.number(of("cost_cents"), most=100 * MOST_USD)
    opened = question if isinstance(question, list | dict | None) else _text(question)
    prompt, system = read_prompt(opened), row.text(of("system_prompt"))
    key, messages = (prompt.key, prompt.messages) if prompt else (None, None)
    if prompt and system and prompt.system != system:
        # One question under two prompts is two; of two columns that contradict, nobody knows which
        # was sent.
        key = f"system: {system}\n\n{prompt.key}"
        messages = (("system", system), *messages) if messages and not prompt.system else None
    history = prompt.history if prompt else None
    probability = row.number(of("asked_probability"), most=1)
    if probability == 0:
        problem = "is 0, but the call was made; give a number above 0"
        raise row.place.refusal(of("asked_probability"), problem)
    reply = row.find(of("text"))[1]
    system = prompt.system if system is None and prompt else system
    return ImportedCall(
        place=row.place,
        model=model,
        id=name,
        question=prompt.question if prompt else "",
        key=key,
        system=system,
        history="" if history is None and system is not None else history,
        messages=messages,
        parameters=_parameters(row, column),
        gold=tuple(answer for answer in gold if answer.strip()),
        text=read_reply(reply) if isinstance(reply, list | dict) else _text(reply),
        answer=_text(row.find(of("answer"))[1]),
        correct=options.grade(score) if right is None else right,
        unscored=right is None and score is None and bool(column.keys() & {"right", "score"}),
        usages=_usages(row, column),
        error=_error(row, column),
        score=score,
        cost_usd=dollars(row, of("cost")) if cents is None else cents / 100,
        latency_s=row.number(of("latency_s")) if seconds is None else seconds,
        confidence=row.number(of("confidence"), most=1),
        asked_probability=probability,
        **read,
    )


def _text(value: Any) -> str | None:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return FileRow({"": value}, RowPlace("")).text("")


def _usages(row: FileRow, column: Mapping[str, str]) -> tuple[Usage, ...]:
    counts = {}
    for meaning in (name for name in _COUNTS if name in column):
        name = plain(column[meaning])  # `prompt_tokens` says what is within it
        counts[name if name in _WIRE else meaning] = row.count(column[meaning])
    whole = row.part(column["usage"]).values if "usage" in column else {}
    beside = {
        name: value
        for name, value in row.values.items()
        if "token" in name.casefold() and name not in column.values()
    }
    return usages_of({**whole, **beside, **counts}, row.values)


def _error(row: FileRow, column: Mapping[str, str]) -> CallError | None:
    said, finish, status, reply = (
        row.find(column[name])[1] if name in column else None
        for name in ("error", "finish_reason", "status", "text")
    )
    if said is not None and str(said).strip().casefold() not in _NO_ERROR:
        stated = said.get("message") if isinstance(said, dict) else said
        return call_error(str(stated))
    ends = [finish, status]
    if any(number is not None and 400 <= number < 600 for number in map(as_number, ends)):
        return call_error(f"status {ends[-1]}")
    found = (failure_of({"finish_reason": str(end or "").lower()}) for end in ends)
    return next(filter(None, found), None) or failure_of(reply)


def _parameters(row: FileRow, column: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what was asked for; without a column of it all, what has no column is not known."""
    named: dict[str, Any] = {
        name: number
        for name in ("temperature", LIMIT, "top_p", "thinking_budget")
        if name in column and (number := row.number(column[name])) is not None
    }
    if "reasoning_effort" in column and (effort := row.text(column["reasoning_effort"])):
        named["reasoning_effort"] = effort
    whole = row.inner(column["parameters"]) if "parameters" in column else None
    if isinstance(whole, dict):
        return parameters_of(whole | named)
    return parameters_of(named, "temperature", LIMIT) if named else None

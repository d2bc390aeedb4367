"""What the columns of a table of calls mean, going by their names and the units in them."""

import re
from collections.abc import Iterable, Mapping
from shlex import quote

from farthing.errors import InputError
from farthing.traces.error_text import near
from farthing.traces.importers.base import Options
from farthing.traces.importers.row import Row, as_number
from farthing.traces.importers.source import Source
from farthing.traces.importers.supply import MOST_USD

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "sample_id", "prompt_id", "example_id", "task_id"),
    "question": ("question", "prompt", "query", "input", "instruction"),
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
    "system_prompt": ("system_prompt", "system_message"),
    "parameters": ("parameters", "model_parameters"),
    "temperature": ("temperature",),
    "max_tokens": ("max_tokens", "max_completion_tokens"),
    "top_p": ("top_p",),
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
_OF_TOKENS = {"token", "tokens", "1k", "1m", "k", "m", "mtok", "ktok", "million", "thousand"}
"""What the name of a price of tokens has, and that of a call's cost has not."""
_WORD = re.compile(r"[^\W_]+|[$¢£¥%\u20a0-\u20cf]")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MONEY = re.compile(r"(?:(?:US)?\$|USD)?\s*(?P<amount>\S+?)\s*(?:\$|USD)?", re.IGNORECASE)
_GROUPED = re.compile(r"[1-9]\d{0,2}(,\d{3})+\.\d+|[1-9]\d{0,2}(,\d{3}){2,}")
"""1,234.50 and 1,234,567; of 1,234 alone nobody knows whether it is a thousand or about one."""


def columns_of(source: Source, options: Options) -> dict[str, str]:
    """Return meaning to column: as the user maps them, else by the columns' names.

    Raises:
        InputError: the user names what is not there, or what is in another unit; no column has the
            model or the question; or several may be the cost.
    """
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
    _refuse_two_costs(source.name, free, options)
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
    words = _words(column)
    units = {_UNITS[word] for word in words if word in _UNITS}
    if len(units) != 1:
        return "_".join(words)
    return "_".join([word for word in words if word not in {*_UNITS, "in", "us"}] + [*units])


def dollars(row: Row, column: str) -> float | None:
    """Return an amount of dollars, also one that is written with their sign or name.

    >>> from farthing.traces.importers.row import Place
    >>> row = Row({"a": "$0.0001525", "b": "1,234.50 USD", "c": ""}, Place("calls.csv", 2))
    >>> [dollars(row, column) for column in "abc"]
    [0.0001525, 1234.5, None]

    Raises:
        InputError: it is no amount of dollars, or it may be several.
    """
    value = row.find(column)[1]
    found = _MONEY.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is not None:
        amount = found["amount"]
        value = amount.replace(",", "") if _GROUPED.fullmatch(amount) else amount
        if as_number(value) is not None:
            row = Row({column: value}, row.place)
    return row.number(column, most=MOST_USD)


def _words(column: str) -> list[str]:
    return _WORD.findall(_HUMP.sub("_", column).casefold())


def _refuse_other_unit(meaning: str, column: str) -> None:
    """Refuse a column that is mapped to a cost or a latency, and whose name says another unit."""
    of_cost = meaning in COSTS
    if of_cost and _OF_TOKENS & set(_words(column)):
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


def _refuse_two_costs(name: str, fields: Iterable[str], options: Options) -> None:
    if not options.columns.keys() & {*COSTS}:
        names = {name for meaning in COSTS for name in COLUMNS[meaning]}
        found = sorted(field for field in fields if plain(field) in names)
        if len(found) > 1:
            raise InputError(
                f"{name}: {' and '.join(found)} may each be what a call cost; say which one is "
                f"with --column {quote(f'cost={found[0]}')}"
            )

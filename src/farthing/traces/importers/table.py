"""A table of one row a call: CSV, JSON Lines or Parquet, with whichever names its columns have."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from farthing.errors import InputError
from farthing.traces.error_text import near
from farthing.traces.importers.base import Found, Options, Recorded, Remark
from farthing.traces.importers.chat import asked
from farthing.traces.importers.row import Row
from farthing.traces.importers.source import Source

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
    "cost": ("cost", "cost_usd", "total_cost", "price", "price_usd", "spend", "usd"),
    "input_tokens": ("input_tokens", "prompt_tokens", "tokens_in", "n_input_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens", "tokens_out", "n_output_tokens"),
    "latency_s": ("latency_s", "latency", "latency_seconds", "seconds", "duration_s", "duration"),
    "latency_ms": ("latency_ms", "duration_ms"),
    "confidence": ("confidence", "probability"),
    "uncertainty": ("uncertainty", "entropy"),
    "group": ("group", "subject", "dataset", "category", "eval_name"),
    "split": ("split",),
}  # fmt: skip
"""Meaning to the usual names of its column; capitals, spaces and dashes do not matter."""
_ANSWERS = {"answer", "text", "right", "score"}


@dataclass(frozen=True)
class Table:
    """Reads one row a call."""

    name: str = "table"
    meaning: str = "one row a call: question, model, answer, whether it is right, cost"
    samples: bool = True

    def sniff(self, source: Source) -> bool:
        """Return whether columns name a question, a model, and an answer or its grade."""
        found = known(source.fields).keys()
        return bool(found & {"id", "question"} and "model" in found and found & _ANSWERS)

    def read(self, source: Source, options: Options) -> Iterator[Found]:
        """Yield the rows; one that names no model or no question is refused."""
        columns = columns_of(source, options)
        unread = sorted(source.fields - set(columns.values()))
        if unread:
            yield Remark(
                f"columns that are not read: {', '.join(unread)}; --column NAME=COLUMN, with NAME "
                f"one of {', '.join(name for name in COLUMNS if name not in columns)}"
            )
        for row in source.rows():
            yield _recorded(row, columns, options.threshold)


TABLE = Table()


def _recorded(row: Row, column: Mapping[str, str], threshold: float) -> Recorded:
    def of(meaning: str) -> str:
        return column.get(meaning, f"({meaning})")

    model = row.text(of("model"))
    if model is None:
        raise row.place.refusal(column["model"], "is missing; name the model of the call")
    question, name = row.text(of("question")), row.text(of("id"))
    if question is None and name is None:
        raise row.place.refusal(
            column.get("question", column.get("id", "question")),
            "is missing; give the question's text or its id",
        )
    score = row.score(of("score"))
    right = row.flag(of("right"))
    milliseconds = row.number(of("latency_ms"))
    prompt = asked(question)
    return Recorded(
        place=row.place,
        model=model,
        id=name,
        question=prompt.question if prompt else "",
        key=prompt.key if prompt else None,
        gold=_accepted(row, of("gold")),
        group=row.text(of("group")),
        split=row.text(of("split")),
        answer=row.text(of("answer")),
        text=row.text(of("text")),
        correct=right if right is not None or score is None else score >= threshold,
        score=score,
        cost_usd=row.number(of("cost"), most=1e6),
        input_tokens=row.count(of("input_tokens")),
        output_tokens=row.count(of("output_tokens")),
        latency_s=row.number(of("latency_s")) if milliseconds is None else milliseconds / 1_000,
        confidence=row.number(of("confidence"), most=1),
        uncertainty=row.number(of("uncertainty")),
    )


def _accepted(row: Row, name: str) -> tuple[str, ...]:
    """Return the accepted answers: one, or a list of them."""
    several = row.inner(name)
    if isinstance(several, list) and all(isinstance(answer, str) for answer in several):
        return tuple(answer for answer in several if answer.strip())
    answer = row.text(name)
    return () if answer is None else (answer,)


def columns_of(source: Source, options: Options) -> dict[str, str]:
    """Return meaning to column: as the user maps them, else by the columns' names.

    Raises:
        InputError: the user names what is not there, or no column has the model or the question.
    """
    for meaning, column in options.columns.items():
        if meaning not in COLUMNS:
            meant = near(meaning, COLUMNS)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(COLUMNS)}"
            raise InputError(f"--column {meaning}={column}: {meaning} is no such name; {hint}")
        if column not in source.fields:
            there = ", ".join(sorted(source.fields))
            raise InputError(f"{source.name}: has no column {column}; there are {there}")
    free = source.fields - set(options.columns.values())
    columns = known(free) | dict(options.columns)
    for needed in (("model",), ("question", "id"), sorted(_ANSWERS)):
        if not columns.keys() & set(needed):
            raise InputError(
                f"{source.name}: no column is named {' or '.join(needed)}; map one with --column "
                f"{needed[0]}=COLUMN (there are {', '.join(sorted(source.fields))})"
            )
    return columns


def known(fields: Iterable[str]) -> dict[str, str]:
    """Return meaning to column, for columns with a usual name."""
    usual = {_plain(field): field for field in sorted(fields)}
    found = {
        meaning: next((usual[name] for name in names if name in usual), None)
        for meaning, names in COLUMNS.items()
    }
    return {meaning: column for meaning, column in found.items() if column is not None}


def _plain(column: str) -> str:
    return column.strip().casefold().replace(" ", "_").replace("-", "_")

"""A table of one row a call: CSV, JSON Lines or Parquet, with whichever names its columns have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.traces.importers.base import ImportedCall, ImportEvent, ImportNote, Options
from farthing.traces.importers.chat import Asked, asked
from farthing.traces.importers.columns import COLUMNS, SAID, columns_of, dollars, known
from farthing.traces.importers.row import Row
from farthing.traces.importers.source import Source
from farthing.traces.importers.supply import MOST_USD
from farthing.traces.parameters import LIMIT, parameters_of


@dataclass(frozen=True)
class Table:
    """Reads one row a call."""

    name: str = "table"
    meaning: str = "one row a call: question, model, answer, whether it is right, cost"
    samples: bool = True
    columns: tuple[str, ...] = tuple(COLUMNS)

    def sniff(self, source: Source) -> bool:
        """Return whether columns name a question, a model, and an answer or its grade."""
        found = known(source.fields).keys()
        return bool(found & {"id", "question"} and "model" in found and found & SAID)

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        """Yield the rows; one that names no model or no question is refused."""
        columns = columns_of(source, options)
        unread = sorted(source.fields - set(columns.values()))
        if unread:
            yield ImportNote(
                f"columns that are not read: {', '.join(unread)}; --column NAME=COLUMN, with NAME "
                f"one of {', '.join(name for name in COLUMNS if name not in columns)}"
            )
        for row in source.rows():
            yield _recorded(row, columns, options.threshold)


TABLE = Table()


def _recorded(row: Row, column: Mapping[str, str], threshold: float) -> ImportedCall:
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
    cents = row.number(of("cost_cents"), most=100 * MOST_USD)
    prompt, system = asked(question), row.text(of("system_prompt"))
    system = prompt.system if system is None and prompt else system
    history = prompt.history if prompt else None
    return ImportedCall(
        place=row.place,
        model=model,
        id=name,
        question=prompt.question if prompt else "",
        key=_key(prompt, system),
        system=system,
        history="" if history is None and system is not None else history,
        parameters=_parameters(row, column),
        gold=_accepted(row, of("gold")),
        group=row.text(of("group")),
        split=row.text(of("split")),
        answer=row.text(of("answer")),
        text=row.text(of("text")),
        correct=right if right is not None or score is None else score >= threshold,
        score=score,
        cost_usd=dollars(row, of("cost")) if cents is None else cents / 100,
        input_tokens=row.count(of("input_tokens")),
        output_tokens=row.count(of("output_tokens")),
        latency_s=row.number(of("latency_s")) if milliseconds is None else milliseconds / 1_000,
        confidence=row.number(of("confidence"), most=1),
        uncertainty=row.number(of("uncertainty")),
        asked_probability=_probability(row, of("asked_probability")),
        missing_because=row.text(of("missing_because")),
    )


def _probability(row: Row, name: str) -> float | None:
    """Return the probability of a call that was made, which is above 0."""
    if (found := row.number(name, most=1)) == 0:
        raise row.place.refusal(name, "is 0, but the call was made; give a number above 0")
    return found


def _key(prompt: Asked | None, system: str | None) -> str | None:
    """Return all that the model was shown: one question under two prompts is two."""
    if prompt is None or not system or prompt.system == system:
        return prompt.key if prompt else None
    return f"system: {system}\n\n{prompt.key}"


def _parameters(row: Row, column: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what was asked for; without a column of it all, what has no column is not known."""
    named = {
        name: number
        for name in ("temperature", LIMIT, "top_p")
        if name in column and (number := row.number(column[name])) is not None
    }
    whole = row.inner(column["parameters"]) if "parameters" in column else None
    if isinstance(whole, dict):
        return parameters_of(whole | named)
    return parameters_of(named, "temperature", LIMIT) if named else None


def _accepted(row: Row, name: str) -> tuple[str, ...]:
    """Return the accepted answers: one, or a list of them."""
    several = row.inner(name)
    if isinstance(several, list) and all(isinstance(answer, str) for answer in several):
        return tuple(answer for answer in several if answer.strip())
    answer = row.text(name)
    return () if answer is None else (answer,)

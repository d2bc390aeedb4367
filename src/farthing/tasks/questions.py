"""Questions from the public files' own formats, or from yours.

A task registers how one row of its files becomes a question, with one line::

    [project.entry-points."farthing.questions"]
    trivia = "my_package.trivia:question"

A task that registers nothing here reads JSON Lines of your own alone.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from farthing import plugins
from farthing.errors import InputError, QuestionFormatError
from farthing.tasks.base import Question
from farthing.tasks.rows import Row, read_rows

Converter = Callable[[Row], Question]
"""Turns a row into a question, or raises QuestionFormatError."""
SPLITS = ("train", "calibrate", "test")
_FIELDS = frozenset(field.name for field in fields(Question)) - {"text"} | {"question", "answer"}
_GOLD = frozenset({"gold", "answer", "solution"})
"""Fields in which rows say what is right."""


def load_questions(
    task: str,
    path: str | Path,
    *,
    limit: int | None = None,
    seed: int | None = None,
    split: str | None = None,
    graded: bool = True,
) -> list[Question]:
    """Load the questions of a task, in the order of their file.

    Args:
        task: `hotpotqa`, `mmlu`, `gsm8k`, `math`, or another registered one. Any task also takes
            JSON Lines of your own, see `own`.
        path: a file in the public data set's own format, a folder of such files, or
            `dataset:NAME[:CONFIG]` for the `datasets` library.
        limit: how many questions at most; the first ones, unless there is a seed.
        seed: draws the questions at random, without replacement; the same seed draws the same.
        split: `train`, `calibrate` or `test`, for the questions of that part alone. Rows say it
            themselves, else the name of file or folder does; dev and val are `calibrate`.
        graded: whether rows have to say which answers are accepted; where they need not, what a
            row does not say is left out.

    Raises:
        QuestionFormatError: a row is not in the form; the message names file, row and field.
        InputError: there is nothing at the path, or no question of that split.
        UnknownNameError: no such task is registered.
        MissingExtraError: a data set is asked for, and `datasets` is not installed.
    """
    if split is not None and split not in SPLITS:
        raise InputError(f"the split is '{split}'; give one of {', '.join(SPLITS)}")
    if limit is not None and limit < 1:
        raise InputError(f"the limit is {limit}; give at least 1")
    convert = _converter(task)
    seen: dict[str, str] = {}
    questions = []
    for read in read_rows(path):
        row = read if graded else _ungraded(read)
        question = own(row) if "gold" in row.values else _converted(row, convert)
        first = seen.setdefault(question.id, row.place)
        if first != row.place:
            raise row.refusal("id", f"'{question.id}' is that of {first}; ids are unique")
        if split in {None, question.split}:
            questions.append(question)
    if not questions:
        raise InputError(f"{path} holds no question{f' of the split {split}' if split else ''}")
    return _sample(questions, limit, seed)


def _converter(task: str) -> Converter:
    plugins.load("tasks", task)  # an unknown task is refused as such
    converter: Converter = own
    if task in plugins.names("questions"):
        converter = plugins.load("questions", task)
    return converter


def _ungraded(row: Row) -> Row:
    """Return a row that need not be graded, without answers that it names and leaves blank."""
    values = {k: v for k, v in row.values.items() if not (k in _GOLD and v in (None, "", []))}
    return replace(row, values=values, graded=False)


def _converted(row: Row, convert: Converter) -> Question:
    """Read a row as its task has it; one that need not be graded may be in the form of `own`."""
    try:
        return convert(row)
    except QuestionFormatError:
        if row.graded:
            raise
        with suppress(QuestionFormatError):
            return own(row)
        raise


def _sample(questions: list[Question], limit: int | None, seed: int | None) -> list[Question]:
    if limit is None or limit >= len(questions) or seed is None:
        return questions[:limit]
    drawn = np.random.default_rng(seed).choice(len(questions), size=limit, replace=False)
    return [questions[i] for i in np.sort(drawn)]


def own(row: Row) -> Question:
    """Read a row of your own: `question`, `gold`, and whatever else a question has.

    `gold` is one accepted answer or a list of them; `answer` is another name for it. Optional:
    `id`, `group`, `split`, `choices` (a list), `paragraphs` (a list of [title, text]).

    >>> mine = own(Row({"question": "2 + 2?", "gold": "4"}, "mine.jsonl, line 1", "mine", 1))
    >>> mine.id, mine.text, mine.gold
    ('mine-1', '2 + 2?', ('4',))
    """
    for unknown in row.values.keys() - _FIELDS:
        known = ", ".join(sorted(_FIELDS))
        raise row.refusal(unknown, f"is no field of a question; there are {known}")
    split = row.label("split") or row.split
    if split not in {None, *SPLITS}:
        raise row.refusal("split", f"is '{split}'; give one of {', '.join(SPLITS)}")
    gold = row.values.get("gold", row.values.get("answer", ()))
    return Question(
        id=row.label("id") or f"{row.source}-{row.number}",
        text=row.text("question"),
        gold=(gold,) if isinstance(gold, str) else _texts(row, "gold", gold),
        group=row.label("group"),
        split=split,
        choices=_texts(row, "choices", row.values.get("choices", ())),
        paragraphs=tuple(_paragraph(row, pair) for pair in row.values.get("paragraphs") or ()),
    )


def _texts(row: Row, field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise row.refusal(field, f"is {value!r:.60}; it must be a list of texts")
    return tuple(value)


def _paragraph(row: Row, pair: Any) -> tuple[str, str]:
    match pair:
        case [str(title), str(text)]:
            return title, text
    raise row.refusal("paragraphs", f"hold {pair!r:.60}; each is a list of title and text")

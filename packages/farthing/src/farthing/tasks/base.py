"""What a task is: it decides when two answers are the same, and which ones are right."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict, runtime_checkable


class Beside(TypedDict):
    """What was asked beside the text of a question, as a trace keeps it."""

    options: str | None
    history: str | None


@dataclass(frozen=True)
class Question:
    """One question of a task."""

    id: str
    """Unique in its file."""
    text: str
    gold: tuple[str, ...] = ()
    """Accepted answers; empty where nobody knows."""
    group: str | None = None
    """Stratum: a subject, a kind of question."""
    split: str | None = None
    """`train`, `calibrate` or `test`, where its file says so."""
    choices: tuple[str, ...] = ()
    """The answers to choose from, A first, where it is multiple choice."""
    paragraphs: tuple[tuple[str, str], ...] = ()
    """(title, text) that came with the question."""

    @property
    def beside(self) -> Beside:
        """Its options, and a digest of the paragraphs that came before it; None: there are none.

        >>> Question("q", "Which?", choices=("Oslo", "Rome")).beside
        {'options': '["Oslo", "Rome"]', 'history': None}
        """
        options = json.dumps(self.choices, ensure_ascii=False) if self.choices else None
        if not self.paragraphs:
            return Beside(options=options, history=None)
        digest = hashlib.sha256(json.dumps(self.paragraphs).encode()).hexdigest()
        return Beside(options=options, history=f"sha256:{digest}")


@runtime_checkable
class Task(Protocol):
    """Normalises and grades the answers to one kind of question."""

    @property
    def name(self) -> str:
        """What the `task` field of a trace calls it."""
        ...

    def normalise(self, answer: str) -> str:
        """Return the form in which answers are compared; normalising twice changes nothing."""
        ...

    def grade(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether the answer is one of the accepted ones; no answer is never right."""
        ...


@runtime_checkable
class Particular(Protocol):
    """A task that not every text can be an accepted answer of."""

    def accepts(self, gold: str) -> bool:
        """Return whether a text can be an accepted answer."""
        ...


def is_answer(answer: str | None) -> bool:
    """Return whether there is an answer at all: neither None nor blank.

    >>> is_answer("no"), is_answer(" "), is_answer(None)
    (True, False, False)
    """
    return answer is not None and answer.strip() != ""


@dataclass(frozen=True)
class ExactMatch:
    """A task whose answers are right when they equal an accepted one after normalisation.

    >>> ExactMatch("shout", str.upper).grade("yes", ["YES"])
    True
    """

    name: str
    """What the `task` field of a trace calls it."""
    normalise: Callable[[str], str]
    """Answer to the form in which answers are compared."""
    form: re.Pattern[str] = re.compile(r".+", re.DOTALL)
    """What an accepted answer looks like after normalisation."""

    def accepts(self, gold: str) -> bool:
        """Return whether a text can be an accepted answer."""
        return is_answer(gold) and self.form.fullmatch(self.normalise(gold)) is not None

    def grade(self, answer: str | None, gold: Sequence[str]) -> bool:
        """Return whether the answer equals an accepted one; no answer is never right."""
        if answer is None or not is_answer(answer):
            return False
        return self.normalise(answer) in {self.normalise(accepted) for accepted in gold}

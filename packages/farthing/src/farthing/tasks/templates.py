"""Prompts as text files, filled so that what is inserted stays data.

Every inserted text is quoted between two lines that carry a mark, and no inserted text holds the
mark, so none can close its own quotation. A question that is a whole message of its own stands
there as it is: nothing is beside it that it could be taken for. Filling is one pass: braces in
inserted text are braces. The same texts give the same prompt, which is what lets a call be found
again in a log.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from farthing.errors import InputError
from farthing.models.base import Message, Speaker
from farthing.tasks.base import Question

PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "base": frozenset({"question"}),
    "react": frozenset({"question", "tools", "steps"}),
    "observation": frozenset({"observation", "hint"}),
    "review": frozenset({"verdict", "answer"}),
    "guide": frozenset({"question", "reasoning", "answer"}),
    "exit": frozenset({"question", "answers"}),
    "right": frozenset({"question", "answer"}),
    "same": frozenset({"question", "answer", "other"}),
    "policy": frozenset(
        {"question", "answer", "verdict", "guide_answer", "uncertainty", "coverage"}
    ),
    "controller": frozenset({"question", "mode", "budget", "experts"}),
    "controller-forbidding": frozenset({"question", "mode", "budget", "experts"}),
}
"""What may stand in braces in each prompt; every prompt may also have `mark`."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_SPEAKER = re.compile(r"^\[(system|user)\]\n", re.MULTILINE)
_WHOLE = "{question}"
NOTHING = "(none)"


@dataclass(frozen=True)
class Template:
    """Messages with placeholders.

    >>> template = Template("t", (("user", "Is this right? {answer}"),))
    >>> print(template.fill({"answer": "{x}"})[0].content)
    Is this right? <<quote c9bb2417>>
    {x}
    <<end c9bb2417>>
    """

    name: str
    messages: tuple[tuple[Speaker, str], ...]

    @property
    def whole(self) -> bool:
        """Whether the question is a message of its own, and the only thing that is inserted.

        >>> Template("t", (("system", "Be brief."), ("user", "{question}"))).whole
        True
        """
        inserting = [text for _, text in self.messages if _PLACEHOLDER.search(text)]
        return inserting == [_WHOLE]

    def fill(
        self, quoted: Mapping[str, str | None], plain: Mapping[str, str] | None = None
    ) -> tuple[Message, ...]:
        """Return the messages with every placeholder replaced.

        Args:
            quoted: texts that others wrote; each is quoted between marked lines, but for a question
                that is a whole message; a missing or blank one reads "(none)".
            plain: words of our own, inserted as they are.
        """
        mark = _mark(self.name, [text for text in quoted.values() if text])
        values = {name: _quotation(text, mark) for name, text in quoted.items()}
        values |= {**(plain or {}), "mark": mark}
        question = quoted.get("question")
        if self.whole and question and question.strip():
            values["question"] = question
        return tuple(
            Message(role, _PLACEHOLDER.sub(lambda match: values[match[1]], text))
            for role, text in self.messages
        )


@dataclass(frozen=True)
class PromptTemplates:
    """The prompts in use: the package's own, or those of a folder where it has them."""

    folder: Path | None = None
    """Holds files such as `guide.txt`; a prompt that is not there is the package's."""

    def __getitem__(self, name: str) -> Template:
        return _load(name, self.folder)


BUILT_IN = PromptTemplates()
"""The package's own prompts."""


@cache
def _load(name: str, folder: Path | None) -> Template:
    file: Path | Traversable = files("farthing.tasks") / "prompts" / f"{name}.txt"
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder of prompts; leave it out to use the built-in")
        if (folder / f"{name}.txt").exists():
            file = folder / f"{name}.txt"
    text = file.read_text(encoding="utf-8")
    _check(str(file), set(_PLACEHOLDER.findall(text)), PLACEHOLDERS[name])
    head, *sections = _SPEAKER.split(text)
    if not sections:
        return Template(name, (("user", text.strip()),))
    if head.strip():
        raise InputError(
            f"{file}: begins with text that nobody says; start with [system] or [user]"
        )
    said = zip(sections[::2], sections[1::2], strict=True)
    return Template(
        name, tuple(("system" if who == "system" else "user", text.strip()) for who, text in said)
    )


def _check(file: str, used: set[str], allowed: frozenset[str]) -> None:
    for unknown in sorted(used - allowed - {"mark"}):
        known = ", ".join(f"{{{name}}}" for name in sorted(allowed | {"mark"}))
        raise InputError(f"{file}: has {{{unknown}}}, which nothing fills; there are {known}")
    if "question" in allowed - used:
        raise InputError(f"{file}: lacks {{question}}; say where the question goes")


def _mark(name: str, texts: Iterable[str]) -> str:
    """Return eight digits that occur in none of the texts, the same for the same texts."""
    everything = "\x1f".join(texts)
    mark = sha256(f"{name}\x1f{everything}".encode(errors="surrogatepass")).hexdigest()[:8]
    while mark in everything.casefold():
        mark = sha256(mark.encode()).hexdigest()[:8]
    return mark


def _quotation(text: str | None, mark: str) -> str:
    if text is None or not text.strip():
        return NOTHING
    return f"<<quote {mark}>>\n{text}\n<<end {mark}>>"


def asked(question: Question) -> str:
    """Return the question as prompts show it: its text, then its choices by letter.

    >>> print(asked(Question("q", "2 + 2?", choices=("3", "4"))))
    2 + 2?
    A. 3
    B. 4
    """
    choices = [f"{letter}. {c}" for letter, c in zip("ABCDEFGHIJ", question.choices, strict=False)]
    return "\n".join([question.text, *choices])

"""What an importer is: it reads another tool's file, call by call.

An importer only says what its file says. Putting the calls of a question together and
supplying accepted answers and prices (`read.py`) is the same for all of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from farthing.models.base import Usage
from farthing.models.thinking import effort_of
from farthing.models.usage import read_usage
from farthing.traces.base import CallError
from farthing.traces.importers.chat import Messages
from farthing.traces.importers.row import RowPlace
from farthing.traces.importers.source import Source


@dataclass(frozen=True, kw_only=True)
class ImportedCall:
    """One call as a foreign file has it; None is what the file does not say.

    Fields that `Call` or `Trace` has too mean here what they mean there.
    """

    place: RowPlace
    """Where it stands, for messages."""
    model: str
    question: str = ""
    key: str | None = None
    """All that the model was shown; calls with the same key are of one question. None: its text."""
    system: str | None = None
    """The system prompt, which may be empty."""
    history: str | None = None
    messages: Messages | None = None
    """What was sent, whole, where it was texts alone."""
    asked_at: datetime | None = None
    priced_at: datetime | None = None
    """When it was made, of an evaluation, whose times are not those of requests."""
    parameters: Mapping[str, Any] | None = None
    """What was asked for beside the text, as `parameters_of` returns it."""
    id: str | None = None
    """The file's own name of the question; None: a short hash of the key."""
    also: str | None = None
    """Another name under which accepted answers may be given."""
    group: str | None = None
    split: str | None = None
    cluster: str | None = None
    gold: tuple[str, ...] = ()
    text: str | None = None
    answer: str | None = None
    """The answer, where the file has it; otherwise it is read from the reply."""
    correct: bool | None = None
    score: float | None = None
    unscored: bool = False
    """Whether a grader was to say, and said nothing: then no accepted answer grades it instead."""
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    """Thoughts included."""
    usages: tuple[Usage, ...] = ()
    """What each request took, whole, in place of the two above; a retried call made several."""
    latency_s: float | None = None
    confidence: float | None = None
    uncertainty: float | None = None
    asked_probability: float | None = None
    missing_because: str | None = None
    error: CallError | None = None
    priced_as: str | None = None
    """What price lists call the model; None: as it is named."""
    provider: str | None = None
    """Who sells the model, as price lists call them; None: its name is all that is known."""

    @property
    def role(self) -> str:
        """The model, with the effort or budget that its request names, as `o4-mini@low`."""
        effort = effort_of(self.parameters or {})
        return self.model if effort is None else f"{self.model}@{effort}"


@dataclass(frozen=True)
class LeftOut:
    """A row of the file that is no call, or not enough of one."""

    why: str
    """Follows "5 rows were left out: " in a note; equal reasons are counted."""


@dataclass(frozen=True)
class ImportNote:
    """Something about the whole file that its user should know; equal ones are said once."""

    text: str


ImportEvent = ImportedCall | LeftOut | ImportNote
"""What an importer yields."""


@dataclass(frozen=True)
class Options:
    """What the file does not say itself, and only some formats ask for."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """Meaning (`answer`) to the column that has it (`response`): of a table, and what else an
    importer says that it reads."""
    threshold: float = 0.5
    """The least score that counts as right."""
    score: str | None = None
    """Name of the recorded score that grades the answers; None: the format's usual one."""
    requests: Path | None = None
    """Of OpenAI's batches: the input file, which has the questions."""
    samples: bool = False
    """Whether several calls on one question are independent samples of one model."""

    def grade(self, score: float | None) -> bool | None:
        """Return whether a score counts as right; None where there is none."""
        return None if score is None else score >= self.threshold


@dataclass(frozen=True)
class Importer:
    """What is registered under `farthing.importers`; any object with the first four will do."""

    name: str
    """What `--from` calls it."""
    meaning: str
    """Whose file it is, in a few words."""
    sniff: Callable[[Source], bool]
    """Whether a file is of this format, going by its first record."""
    read: Callable[[Source, Options], Iterator[ImportEvent]]
    """Yields the calls in the order of the file; raises an InputError that names file, line and
    field where the file breaks its format."""
    samples: bool = False
    """Whether it yields every sample that its file has of a model on a question, each a call;
    `--samples` reads no others."""
    columns: Sequence[str] = ()
    """Meanings of columns that it reads where `--column` maps them; others are refused."""


def usages_of(counts: Any, beside: Mapping[str, Any] | None = None) -> tuple[Usage, ...]:
    """Return what one request took, as `read_usage` reads it; nothing where that is not said."""
    found = read_usage(counts, beside)
    return () if found is None else (found,)

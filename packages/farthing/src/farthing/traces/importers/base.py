"""What an importer is: it reads another tool's file, call by call.

An importer only says what its file says. Putting the calls of a question together (`gather.py`),
and supplying accepted answers and prices (`missing_fields.py`), is the same for all of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from farthing.models.base import Usage
from farthing.models.thinking import effort_of
from farthing.traces.base import CallError
from farthing.traces.importers.chat import Messages
from farthing.traces.importers.row import RowPlace
from farthing.traces.importers.source import Source


@dataclass(frozen=True, kw_only=True)
class ImportedCall:
    """One call as a foreign file has it; None is what the file does not say."""

    place: RowPlace
    """Where it stands, for messages."""
    model: str
    """Name of the model that was asked."""
    question: str = ""
    """What was asked, as text."""
    key: str | None = None
    """All that the model was shown; calls with the same key are of one question. None: its text."""
    system: str | None = None
    """The system prompt, which may be empty."""
    history: str | None = None
    """What was said before the question, which may be nothing."""
    messages: Messages | None = None
    """What was sent, whole, where it was texts alone."""
    asked_at: datetime | None = None
    """When it was asked, where the file says so."""
    priced_at: datetime | None = None
    """When it was made, of an evaluation, whose times are not those of requests."""
    parameters: Mapping[str, Any] | None = None
    """What was asked for beside the text, as `parameters_of` returns it."""
    id: str | None = None
    """The file's own name of the question; None: a short hash of the key."""
    also: str | None = None
    """Another name under which accepted answers may be given."""
    group: str | None = None
    """Stratum: a subject, a data set."""
    split: str | None = None
    """`train`, `calibrate` or `test`."""
    cluster: str | None = None
    """What joins it to questions that are no independent draws beside it."""
    gold: tuple[str, ...] = ()
    """Accepted answers."""
    text: str | None = None
    """The whole reply."""
    answer: str | None = None
    """The answer, where the file has it; otherwise it is read from the reply."""
    correct: bool | None = None
    """Whether the answer is right."""
    score: float | None = None
    """The grade as a number, where the file has one."""
    unscored: bool = False
    """Whether a grader was to say, and said nothing: then no accepted answer grades it instead."""
    cost_usd: float | None = None
    """What was paid, in US dollars."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    """Thoughts included."""
    reasoning_tokens: int | None = None
    """Of the output tokens those that are thoughts."""
    usages: tuple[Usage, ...] = ()
    """What each request took, whole, in place of the three above; a retried call made several."""
    latency_s: float | None = None
    """Wall time, in seconds."""
    confidence: float | None = None
    """In [0, 1]."""
    uncertainty: float | None = None
    """At least 0."""
    asked_probability: float | None = None
    """The probability with which the call was made, where a lot decided it."""
    missing_because: str | None = None
    """Why the question lacks calls: `chance`, `earlier_reply` or `unknown`."""
    error: CallError | None = None
    """Why the call failed, where it did."""
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


class Importer(Protocol):
    """What is registered under `farthing.importers`.

    One that also has `samples`, and it is true, yields every sample that its file has of a model on
    a question, each a call; `--samples` reads no others. One that has `columns`
    reads those that `--column` maps to these meanings; others are refused.
    """

    @property
    def name(self) -> str:
        """What `--from` calls it."""
        ...

    @property
    def meaning(self) -> str:
        """Whose file it is, in a few words."""
        ...

    def sniff(self, source: Source) -> bool:
        """Return whether a file is of this format, going by its first record."""
        ...

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        """Yield the calls in the order of the file.

        Raises:
            InputError: the file breaks its format; the message names file, line and field.
        """
        ...

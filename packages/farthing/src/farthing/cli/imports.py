"""What `farthing traces import` is told about another tool's files, and what it says of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli import completion
from farthing.cli.console import remark
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.models.prices import Price
    from farthing.traces.base import Trace
    from farthing.traces.copies import DuplicateCounter
    from farthing.traces.importers.base import Options
    from farthing.traces.importers.read import Imported, Supplied
    from farthing.traces.store import Store


Prices = Annotated[
    list[str],
    typer.Option(
        "--price",
        metavar="MODEL=IN,OUT[,CACHED[,WRITE[,HOUR]]]",
        help="USD per million tokens for missing costs; optionally cache reads and writes.",
    ),
]


@dataclass(frozen=True)
class ImportOptions:
    """What another tool's file does not say itself."""

    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="NAME",
            help="How answers are read and compared.",
            autocompletion=completion.tasks,
        ),
    ] = "text"
    gold: Annotated[
        Path | None,
        typer.Option(
            "--gold", metavar="FILE", help="CSV or JSONL: id or question, and accepted answers."
        ),
    ] = None
    price: Prices = field(default_factory=list)
    column: Annotated[
        list[str],
        typer.Option(
            "--column", metavar="NAME=COLUMN", help="For a table: answer=response; for litellm: id."
        ),
    ] = field(default_factory=list)
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="COLUMN", help="Equal values: one question.")
    ] = None
    threshold: Annotated[
        float, typer.Option("--threshold", metavar="SCORE", help="Lowest score graded as right.")
    ] = 0.5
    score: Annotated[
        str | None,
        typer.Option("--score", metavar="NAME", help="Which recorded score grades the answers."),
    ] = None
    requests: Annotated[
        list[Path],
        typer.Option("--requests", metavar="FILE", help="The input of an OpenAI batch."),
    ] = field(default_factory=list)
    alias: Annotated[
        list[str],
        typer.Option(
            "--alias", metavar="OLD=NEW", help="A model's name in the file, and its new name."
        ),
    ] = field(default_factory=list)
    samples: Annotated[
        bool,
        typer.Option("--samples", help="Keep every answer of the one model as a sample."),
    ] = False

    @property
    def supplied(self) -> "Supplied":
        """The same, as importers take it."""
        from farthing.traces.importers.base import Options
        from farthing.traces.importers.read import Supplied

        return Supplied(
            task=self.task,
            gold=self.gold,
            prices=dict(map(read_price, self.price)),
            requests=tuple(self.requests),
            aliases=dict(read_pair(pair, "--alias") for pair in self.alias),
            options=Options(
                columns=dict(read_pair(pair, "--column") for pair in self.column)
                | ({} if self.cluster is None else {"cluster": self.cluster}),
                threshold=self.threshold,
                score=self.score,
                samples=self.samples,
            ),
        )


def read_pair(text: str, option: str) -> tuple[str, str]:
    """Read NAME=VALUE.

    >>> read_pair("answer=response", "--column")
    ('answer', 'response')
    """
    name, sign, value = text.partition("=")
    if not (sign and name.strip() and value.strip()):
        raise typer.BadParameter(f"{text!r} is no NAME=VALUE", param_hint=option)
    return name.strip(), value.strip()


def read_price(text: str) -> "tuple[str, Price]":
    """Read MODEL=IN,OUT: USD per million tokens that a model reads and writes.

    Up to three more are those from its cache, and into it for minutes and for an hour.

    >>> model, price = read_price("gpt-4o=2.5,10")
    >>> model, str(price)
    ('gpt-4o', '$2.5 in and $10 out per million tokens')
    """
    from farthing.models.prices import token_price

    model, sign, amounts = text.rpartition("=")
    try:
        usd = [Decimal(amount.strip()) for amount in amounts.split(",")]
    except InvalidOperation:
        usd = []
    sound = 2 <= len(usd) <= 5 and all(amount.is_finite() and 0 <= amount < 10**9 for amount in usd)
    if not (sign and model.strip() and sound):
        problem = f"{text!r} is no MODEL=IN,OUT in USD per million tokens; try gpt-4o=2.5,10"
        raise typer.BadParameter(problem, param_hint="--price")
    try:
        return model.strip(), token_price(usd)
    except ValueError as problem:
        raise typer.BadParameter(f"{text!r}: {problem}", param_hint="--price") from None


def format_of(files: Sequence[Path], form: str | None, options: "Options") -> str | None:
    """Return the format that files share, as said or else as they look; None where they differ."""
    from farthing.traces.importers.read import OWN, sniffed

    found = {form} if form else {sniffed(file, options) for file in files}
    if OWN in found and len(files) > 1:
        raise InputError("files of traces are imported one by one, and not along with others")
    return found.pop() if len(found) == 1 else None


def import_foreign(
    files: Sequence[Path], form: str | None, supplied: "Supplied", store: "Store", named: str
) -> int:
    """Add other tools' files to a store, all or nothing, and say what they lack."""
    from farthing.traces.copies import DuplicateCounter
    from farthing.traces.importers.read import check, read_foreign
    from farthing.traces.trace_kind import Checker

    imported: Imported = read_foreign(files, form, supplied)
    check(imported, Checker.after(store.traces(), named))
    repeats = DuplicateCounter.beside(store.traces())
    added = add(store, imported.traces, repeats, ", ".join(map(str, files)), named)
    for note in imported.notes:
        remark(f"note: {note}")
    return added


def add(
    store: "Store", traces: "Iterable[Trace]", repeats: "DuplicateCounter", source: str, named: str
) -> int:
    """Add traces, all or nothing, and say which of them repeat others under another id.

    `repeats` has noted what is stored; `source` and `named` are what their files and the store are
    called.
    """

    def checked() -> "Iterator[Trace]":
        yield from repeats.count(traces)
        repeats.refuse(source, named)  # within the transaction, so that nothing is kept

    added = store.add(checked(), source)
    for note in repeats.notes():
        remark(f"note: {note}")
    return added

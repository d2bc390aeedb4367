"""Recorded questions: read, made of records, made up, divided."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from farthing.api.arguments import missing_of, path_of, shown, supplied_by, whole_of
from farthing.api.frames import frame_of, record_of
from farthing.api.wording import in_python, python_words
from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.promises.base import Promise
from farthing.traces.arrays import SPLITS, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Trace
from farthing.traces.copies import contradiction, repetition
from farthing.traces.costs import doubt
from farthing.traces.eligibility import Missing
from farthing.traces.files import Frame, is_foreign, read_all_with_records, rows_of
from farthing.traces.files import from_records as traces_from_records
from farthing.traces.importers.read import check, read_foreign
from farthing.traces.importers.source import RecordsSource
from farthing.traces.importers.table import TABLE
from farthing.traces.pool import missing, refuse_samples
from farthing.traces.sample import NAME, write_sample_log
from farthing.traces.splits import by_shares
from farthing.traces.store import STORES
from farthing.traces.trace_kind import Checker

if TYPE_CHECKING:
    import pandas as pd

    from farthing.runtime.tried import Look


@dataclass(frozen=True)
class Traces:
    """Recorded questions, in their order.

    `traces[3]` is one question as a record, and iterating yields all of them. A slice, a list of
    places and a mask give questions again, as do `take` and `split`.
    """

    dataset: Dataset
    records: Sequence[Trace] | None = field(default=None, repr=False)
    """The same questions with the texts of their answers; None of made-up ones."""
    tries: tuple[Path, ...] = field(default=(), repr=False)
    """The stores that they are from, which count the proofs made on them."""

    def __len__(self) -> int:
        return len(self.dataset.traces)

    def __repr__(self) -> str:
        """Say how many questions there are, who was asked, and whose calls some lack."""
        arrays = self.dataset.traces
        who = ", ".join(arrays.roles)
        lack = ", ".join(f"{n:,} lack {role}" for role, n in missing(arrays).items())
        some = f" ({lack})" if lack else ""
        return f"<{len(self):,} questions of {self.dataset.name}: {arrays.horizon} x {who}{some}>"

    @overload
    def __getitem__(self, rows: int | np.integer) -> Trace: ...
    @overload
    def __getitem__(self, rows: slice | Sequence[int] | np.ndarray) -> "Traces": ...
    def __getitem__(
        self, rows: int | np.integer | slice | Sequence[int] | np.ndarray
    ) -> "Trace | Traces":
        """Return one question, or several of them.

        >>> import farthing as ft
        >>> records = [
        ...     {"prompt": f"{n} + 1?", "llm": llm, "response": "1", "passed": n == 0, "usd": usd}
        ...     for n in range(10) for llm, usd in (("small", 1e-5), ("large", 1e-3))
        ... ]
        >>> traces = ft.from_records(records)
        >>> traces[-1].question, len(traces[:3]), len(traces[[1, 5]])
        ('9 + 1?', 3, 2)
        """
        if isinstance(rows, int | np.integer):
            place = range(len(self))[rows]  # an IndexError ends iteration, as of a list
            return record_of(self.arrays, place) if self.records is None else self.records[place]
        return self.take(
            np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        )

    def __iter__(self) -> Iterator[Trace]:
        return (self[place] for place in range(len(self)))

    @property
    def models(self) -> tuple[str, ...]:
        """Who was asked, of a pool from the cheapest: the models, or the roles of unnamed ones."""
        names = zip(self.arrays.models, self.arrays.roles, strict=True)
        return tuple(model or role for model, role in names)

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas data frame of one row a call, which `from_records` reads again.

        Raises:
            InputError: pandas is not installed.
        """
        return frame_of(self.arrays, list(self))

    @property
    def arrays(self) -> TraceArrays:
        """The questions as arrays."""
        return self.dataset.traces

    def split(self, *shares: float, seed: int = 0) -> list["Traces"]:
        """Divide the questions at random, each share of them into a part of its own.

        What a file marks stays together. Questions marked `train` are the first part, whatever its
        share, and nothing else is in it; the others share the rest in proportion. Where the file
        marks all three parts and three shares are given, the parts are the marked ones.

        Args:
            shares: of the parts, of at most 1 in all.
            seed: of the division.

        Raises:
            InputError: a share is not above 0, they exceed 1, or a part would be empty.

        >>> import farthing as ft
        >>> records = [
        ...     {"prompt": f"{n} + 1?", "llm": llm, "response": "1", "passed": n == 0, "usd": usd}
        ...     for n in range(10) for llm, usd in (("small", 1e-5), ("large", 1e-3))
        ... ]
        >>> [len(part) for part in ft.from_records(records).split(0.3, 0.5, 0.2)]
        [3, 5, 2]
        """
        known = shares and all(map(_is_share, shares))
        exact = [Fraction(repr(float(share))) for share in shares] if known else []
        if not exact or sum(exact) > 1:
            raise InputError(f"shares are {shares}; give numbers above 0 that add up to 1 at most")
        rng = np.random.default_rng(whole_of(seed, "seed", 0))
        rows = by_shares(self.arrays, exact, rng)
        if not all(map(len, rows)):
            marked = int((self.arrays.split == SPLITS.index("train")).sum())
            own = f", {marked} of them marked to train, which are the first part" if marked else ""
            raise InputError(
                f"a share of {shares} is less than one of {len(self)} questions{own}; give more"
            )
        return [self.take(part) for part in rows]

    def take(self, rows: np.ndarray) -> "Traces":
        """Return the questions at an index.

        Raises:
            InputError: it is none of these questions, or empty.
        """
        try:
            places = np.arange(len(self))[rows].reshape(-1)
        except (IndexError, TypeError, ValueError):
            places = np.arange(0)
        if not len(places):
            raise InputError(
                f"the questions at {shown(rows)} cannot be taken; give places below {len(self)}"
            )
        records = self.records
        if records is not None:
            records = [records[place] for place in places.tolist()]
        dataset = replace(self.dataset, traces=self.arrays.take(places))
        return replace(self, dataset=dataset, records=records)


def traces_of(value: Traces, what: str) -> Traces:
    """Return questions, or refuse what holds none; `what` says which they are to be."""
    if not isinstance(value, Traces):
        raise InputError(
            f"{what} are {shown(value)}; give questions, which read_traces, from_records and "
            "generate return"
        )
    return value


def at_its_look(questions: Traces, asked: Promise, how: Sequence[Any] = ()) -> "Look":
    """Return a promise at what a proof on questions of a try may spend, and what to say of it."""
    from farthing.runtime.tried import at_next_look  # noqa: PLC0415 - models, where needed

    return at_next_look(questions.tries, questions.arrays, asked, how)


def _is_share(share: object) -> bool:
    return isinstance(share, Real | Decimal) and 0 < float(share) <= 1  # which NaN is not


def read_traces(
    path: str | Path | Sequence[str | Path],
    *,
    job: str | Path | None = None,
    missing: Missing | None = None,
    gold: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
) -> Traces:
    """Read recorded questions: JSON Lines (also gzipped), a store, or another tool's file.

    Another tool's file is told by its content; what it lacks is said in warnings.

    Args:
        path: the file; or several, whose calls of the same question come together.
        gold: a file of accepted answers, by question id or text, where another tool's has none.
        columns: of a table, meaning to column, such as `{"answer": "my_answer"}`, where columns
            have names of their own.
        prices: model to US dollars per million tokens that it reads and writes, where another
            tool's file has no costs.
        job: the configuration of the job that made them. A store knows it; without either, a
            bundle cannot notice that a prompt, a parameter or a price was changed.
        missing: what to take of calls that were not made: that "chance" decided it; "unknown"; or
            the "worst", so that whoever needs one loses. None: what the traces say.

    Raises:
        TraceFormatError: the file breaks the form; the message names line and field.
        InputError: its format is not known, or the job cannot have made these traces, or two files
            contradict each other.
    """
    several = path if isinstance(path, Sequence) and not isinstance(path, str) else [path]
    paths = [path_of(one, "the traces") for one in several]
    if not paths:
        raise InputError("the traces are no file; give one, or several")
    job = None if job is None else path_of(job, "the job")
    supplied = supplied_by(columns, prices)
    if gold is not None:
        supplied = replace(supplied, gold=path_of(gold, "the accepted answers"))
    with python_words():
        arrays, records, notes = read_all_with_records(paths, supplied)
    for note in notes:
        warnings.warn(in_python(note), stacklevel=2)
    system, tries = None, tuple[Path, ...]()
    if job is not None or any(one.suffix in STORES for one in paths):
        from farthing.runtime.provenance import made_with  # noqa: PLC0415 - models, where needed
        from farthing.runtime.tried import stores_of  # noqa: PLC0415

        with python_words():
            system, tries = made_with(paths, arrays, job).system, stores_of(paths)
    name = " + ".join(one.name for one in paths)
    dataset = Dataset(name, arrays, system=system, missing=missing_of(missing))
    return replace(_known(dataset, records), tries=tries)


def from_records(
    records: Iterable[Mapping[str, Any]] | Frame,
    name: str = "records",
    *,
    missing: Missing | None = None,
    columns: Mapping[str, str] | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
) -> Traces:
    """Read recorded questions from dictionaries or a data frame (pandas, polars).

    They are in the form of traces (`traces.records`), or any table of one row a call that
    `read_traces` takes as a CSV, by the same names of columns. Of such a table warnings say what it
    lacks.

    Args:
        records: a dictionary a question, or a row a call.
        name: what messages call them.
        missing: what to take of calls that were not made; see `read_traces`.
        columns: of a table, meaning to column; see `read_traces`.
        prices: of a table, model to prices; see `read_traces`.

    Raises:
        InputError: they are no records, or break the form; the message names record and field.

    >>> traces = from_records([
    ...     {"prompt": "2 + 2?", "llm": "small", "response": "4", "passed": True, "usd": 1e-5},
    ...     {"prompt": "2 + 2?", "llm": "large", "response": "4", "passed": True, "usd": 1e-3},
    ... ])
    >>> traces[0].question, traces.models
    ('2 + 2?', ('small', 'large'))
    """
    supplied = supplied_by(columns, prices)
    notes: list[str] = []
    with python_words():
        rows = rows_of(records)
        if columns or prices or is_foreign(rows):
            imported = read_foreign([RecordsSource(rows, name)], TABLE.name, supplied)
            check(imported, Checker())
            traces, notes = imported.traces, imported.notes
        else:
            traces = traces_from_records(rows)
        arrays = assemble(traces)
    for note in filter(None, [*notes, repetition(arrays, traces), contradiction(arrays, traces)]):
        warnings.warn(in_python(note), stacklevel=2)
    return _known(Dataset(name, arrays, missing=missing_of(missing)), traces)


def sample_log(file: str | Path = NAME) -> Path:
    """Write the sample log, 2,000 made-up support tickets that three models answered.

    Nothing is done where it stands already.

    Raises:
        InputError: the file holds something else.
        OSError: it cannot be written.
    """
    path = path_of(file, "the sample log")
    write_sample_log(path)
    return path


def _known(dataset: Dataset, records: Sequence[Trace] | None) -> Traces:
    """Return recorded questions, with a warning where costs are not known."""
    with python_words():
        refuse_samples(dataset.traces)
    if (found := doubt(dataset.traces)) is not None:
        warnings.warn(in_python(found), stacklevel=3)
    return Traces(dataset, records)

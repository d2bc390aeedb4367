"""Recorded questions: read, made of records, made up, divided."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from farthing.api.arguments import missing_of, path_of, shown, text_of, whole_of
from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.process.generator.generate import generate as generate_questions
from farthing.process.generator.presets import preset
from farthing.promises.kinds import weighted
from farthing.promises.levels import Level
from farthing.traces.arrays import SPLITS, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.copies import repetition
from farthing.traces.costs import doubt
from farthing.traces.eligibility import Missing
from farthing.traces.files import read_all
from farthing.traces.pool import missing, refuse_samples
from farthing.traces.records import Frame
from farthing.traces.records import from_records as traces_from_records
from farthing.traces.sample import NAME, write_sample_log
from farthing.traces.splits import by_shares
from farthing.traces.store import STORES


@dataclass(frozen=True)
class Traces:
    """Recorded questions."""

    dataset: Dataset

    def __len__(self) -> int:
        return len(self.dataset.traces)

    def __repr__(self) -> str:
        """Say how many questions there are, who was asked, and whose calls some lack."""
        arrays = self.dataset.traces
        who = ", ".join(arrays.roles)
        lack = ", ".join(f"{n:,} lack {role}" for role, n in missing(arrays).items())
        some = f" ({lack})" if lack else ""
        return f"<{len(self):,} questions of {self.dataset.name}: {arrays.horizon} x {who}{some}>"

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
        >>> [len(part) for part in ft.generate("mmlu-llama2-7b", 10).split(0.3, 0.5, 0.2)]
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
            found = self.arrays.take(np.arange(len(self))[rows])
        except (IndexError, TypeError, ValueError):
            found = None
        if found is None or not len(found):
            raise InputError(
                f"the questions at {shown(rows)} cannot be taken; give places below {len(self)}"
            )
        return Traces(replace(self.dataset, traces=found))


def traces_of(value: Traces, what: str) -> Traces:
    """Return questions, or refuse what holds none; `what` says which they are to be."""
    if not isinstance(value, Traces):
        raise InputError(
            f"{what} are {shown(value)}; give questions, which read_traces, from_records and "
            "generate return"
        )
    return value


def _is_share(share: object) -> bool:
    return isinstance(share, Real | Decimal) and 0 < float(share) <= 1  # which NaN is not


def read_traces(
    path: str | Path | Sequence[str | Path],
    *,
    job: str | Path | None = None,
    missing: Missing | None = None,
) -> Traces:
    """Read recorded questions: JSON Lines (also gzipped), Parquet, a store, or another tool's file.

    Another tool's file is told by its content; what it lacks is said in warnings.

    Args:
        path: the file; or several, whose calls of the same question come together.
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
    (arrays, notes), system = read_all(paths), None
    for note in notes:
        warnings.warn(note, stacklevel=2)
    if job is not None or any(one.suffix in STORES for one in paths):
        from farthing.runtime.provenance import made_with  # noqa: PLC0415 - models, where needed

        system = made_with(paths, arrays, job).system
    name = " + ".join(one.name for one in paths)
    return _known(Dataset(name, arrays, system=system, missing=missing_of(missing)))


def from_records(
    records: Iterable[Mapping[str, Any]] | Frame,
    name: str = "records",
    *,
    missing: Missing | None = None,
) -> Traces:
    """Read recorded questions from dictionaries or a data frame; see `traces.records`.

    Args:
        records: a dictionary a question, or a row a call.
        name: what messages call them.
        missing: what to take of calls that were not made; see `read_traces`.
    """
    traces = traces_from_records(records)
    arrays = assemble(traces)
    if (found := repetition(arrays, traces)) is not None:
        warnings.warn(found, stacklevel=2)
    return _known(Dataset(name, arrays, missing=missing_of(missing)))


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


def _known(dataset: Dataset) -> Traces:
    """Return recorded questions, with a warning where costs are not known."""
    refuse_samples(dataset.traces)
    if (found := doubt(dataset.traces)) is not None:
        warnings.warn(found, stacklevel=3)
    return Traces(dataset)


def generate(name: str, n: int, *, seed: int = 0) -> Traces:
    """Make up questions of a preset, whose cheapest policy is known.

    Raises:
        UnknownNameError: there is no such preset.
        InputError: `n` is below 1.
    """
    config = preset(text_of(name, "the preset", "hotpotqa-llama2-7b")).config
    n, seed = whole_of(n, "the number of questions", 1), whole_of(seed, "seed", 0)
    questions = generate_questions(config, n, np.random.default_rng(seed))
    return Traces(Dataset(name, questions, config, name))


def Shift(level: Level, target: Traces | TraceArrays) -> weighted.Shift:  # noqa: N802 - a promise's name
    """Ask for coverage in another mix of questions, which differs only in what round 1 shows.

    Args:
        level: the probability of being covered.
        target: a sample of that mix, of the kind that trained the policy; grades are not read.

    Raises:
        InputError: the level is no probability, or the target holds no questions.
    """
    if isinstance(target, TraceArrays):
        return weighted.Shift(level, target)
    return weighted.Shift(level, traces_of(target, "the questions of the new mix").arrays)

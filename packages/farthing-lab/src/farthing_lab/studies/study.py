"""What a side study is, and what its table is made of.

A study is a frozen dataclass. Its fields are what is asked; its docstring is the help of
`farthing study NAME`. `measure` plays the method and the baselines beside it, and returns what came
of them: a record whose `rows` are the ways that stand side by side, a `Record` each. `report` lays
these out in columns. A new study is one file with such a class, and an entry point in the group
`farthing.studies`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

from rich.console import Group, RenderableType
from rich.text import Text

from farthing.money import significant
from farthing.promises.statistics.binomial import binomial_interval
from farthing.reports.table import Heading, Record, Table, share_interval

if TYPE_CHECKING:
    from farthing.methods.base import Dataset, Progress
    from farthing.recommendation.base import Watch
    from farthing.traces.arrays import FloatArray, TraceArrays

LEVEL = 0.05
"""How often a 95 % interval may miss."""
WIDE = 1.96
"""Standard errors of half a 95 % interval."""


@dataclass(frozen=True)
class StudyOption:
    """How a field of a study is given on the command line."""

    help: str
    _: KW_ONLY
    flag: str | None = None
    """None: `--` and the field's name."""
    metavar: str | None = None
    least: float | None = None
    default: str | None = None
    """What help says of the default, where the value does not say it."""
    complete: str | None = None
    """Entry points whose names are offered, such as `bandits`."""
    argument: bool = False
    """Whether it is given without a name."""
    such_as: str | None = None
    """Files that may be given without the name as well: an example, for who gave none."""
    share: bool = False
    """Whether a fraction is a share between 0 and 1, and not US dollars."""


TracesFiles = Annotated[
    list[Path],
    StudyOption(
        "Traces, a store (.db), or another tool's log or table; several are joined by question.",
        flag="--traces",
        metavar="FILE",
        such_as="runs.jsonl",
    ),
]
Seed = Annotated[int, StudyOption("Seed of all randomness.", metavar="N", least=0)]


@dataclass(frozen=True)
class StudyContext:
    """What a study has of its surroundings."""

    remark: Callable[[str], None]
    """Takes what is said beside the results."""
    progress: Callable[[str], "Progress"]
    """Returns where work of this name reports to."""
    read_traces: Callable[..., "TraceArrays"]
    """Reads files of traces, joined by question, and says what they lack."""
    read_samples: Callable[[Sequence[Path]], "TraceArrays"]
    """The same, where they may be samples of one model."""
    check_costs: Callable[["TraceArrays"], None]
    """Refuses traces without costs, and says whose calls have none."""
    read_dataset: Callable[..., "tuple[Dataset, dict[str, int]]"]
    """Reads traces, or draws the questions of a preset; returns them and the sizes of the parts."""
    check_file: Callable[[Path], None]
    """Refuses a file that could not be written."""
    check_folder: Callable[[Path], None]
    """Refuses a folder that could not be written to."""
    watch: "Watch"
    """Is told how far trainings are."""


@dataclass(frozen=True)
class StudyReport:
    """What came of a study."""

    title: str
    body: tuple[Table | str, ...]
    record: Record
    """The same for JSON."""
    key: str = ""
    """What the columns mean."""
    remarks: tuple[str, ...] = ()
    """What is said beside the results, after them."""
    interrupted: bool = False
    """Whether it is of what was complete when it was interrupted."""

    def __rich__(self) -> Group:
        """Draw it for a terminal; around a table there is a blank line."""
        lines: list[RenderableType] = [Text(self.title, style="bold", overflow="fold")]
        for before, part in zip((self.title, *self.body), self.body, strict=False):
            if isinstance(before, Table) or isinstance(part, Table):
                lines.append(Text(""))
            lines.append(part if isinstance(part, Table) else Text(part, overflow="fold"))
        if self.key:
            lines += [Text("")] * isinstance(self.body[-1], Table)
            lines.append(Text(self.key, style="dim", overflow="fold"))
        return Group(*lines)


class Study(Protocol):
    """A question about recorded or simulated work; a frozen dataclass with `StudyOption`s."""

    lost: ClassVar[str] = "nothing was written"
    """What is said when it is interrupted; a study that writes nothing need not have it."""

    def measure(self, context: StudyContext) -> Any:
        """Play the method that is asked about, and the baselines beside it.

        Raises:
            InputError: what was asked cannot be measured.
        """
        ...

    def report(self, measured: Any) -> StudyReport:
        """Say what came of it."""
        ...


def usd(heading: str, name: str, digits: int = 3, *, none: str = "") -> Heading:
    """Return a column of US dollars.

    Args:
        heading: of the column.
        name: of the figure in a row.
        digits: significant ones.
        none: what is written where a row has no such figure.
    """
    return heading, lambda row: none if row.get(name) is None else significant(row[name], digits)


def percent(heading: str, name: str, digits: int = 1, *, of: float = 1, none: str = "") -> Heading:
    """Return a column of shares, or of counts `of` so many; the rest is as in `usd`."""
    return heading, lambda row: none if row.get(name) is None else f"{row[name] / of:.{digits}%}"


def interval(heading: str, name: str) -> Heading:
    """Return a column of intervals of a share."""
    return heading, lambda row: share_interval(row.get(name))


def asked_of_each(calls: Mapping[str, int]) -> str:
    """Say how many questions each model was asked, the one asked most first.

    >>> asked_of_each({"small": 2, "large": 1_000, "other": 0})
    'Asked: large 1,000, small 2.'
    """
    most = sorted(((count, name) for name, count in calls.items()), reverse=True)
    return f"Asked: {', '.join(f'{name} {count:,}' for count, name in most if count)}."


def mean_and_half(values: "FloatArray") -> tuple[float, float]:
    """Return a mean and half its 95 % interval, by the normal approximation."""
    return float(values.mean()), WIDE * float(values.std(ddof=1)) / len(values) ** 0.5


def right_interval(right: float, answered: int) -> list[float]:
    """Return the exact 95 % interval of a share of right answers, as JSON has it."""
    return list(binomial_interval(round(right), answered, LEVEL))


def file_names(paths: Sequence[Path]) -> str:
    """Return what files are called together."""
    return " + ".join(path.name for path in paths)


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Write records as JSON Lines."""
    lines = [json.dumps(record, ensure_ascii=False) + "\n" for record in records]
    path.write_text("".join(lines), encoding="utf-8")

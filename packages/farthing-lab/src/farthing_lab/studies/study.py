"""The protocol of a side study, and how one is conducted.

A study is a frozen dataclass. Its fields are what is asked; its docstring is the help of
`farthing study NAME`. `measure` plays the method and the baselines beside it; `report` says what
came of it, in tables and sentences for people and as a record for JSON. A new study is one file
with such a class, and an entry point in the group `farthing_lab.studies`.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, TypeVar

from rich.console import Group, RenderableType
from rich.text import Text

from farthing.promises.statistics.binomial import binomial_interval
from farthing.reports.table import Record, Table

if TYPE_CHECKING:
    from farthing.methods.base import Dataset, Progress
    from farthing.recommendation.base import Watch
    from farthing.traces.arrays import TraceArrays

LEVEL = 0.05
"""How often a 95 % interval may miss."""


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

    def _repr_html_(self) -> str:
        """Draw it for a notebook; whatever stands in it is text."""
        body = [
            part.html if isinstance(part, Table) else f"<p>{escape(part)}</p>" for part in self.body
        ]
        key = [f"<p><small>{escape(self.key)}</small></p>"] if self.key else []
        return "\n".join([f"<h3>{escape(self.title)}</h3>", *body, *key])


Measured = TypeVar("Measured")


class Study(Protocol[Measured]):
    """A question about recorded or simulated work; a frozen dataclass with `StudyOption`s."""

    lost: ClassVar[str] = "nothing was written"
    """What is said when it is interrupted; a study that writes nothing need not have it."""

    def measure(self, context: StudyContext) -> Measured:
        """Play the method that is asked about, and the baselines beside it.

        Raises:
            InputError: what was asked cannot be measured.
        """
        ...

    def report(self, measured: Measured) -> StudyReport:
        """Say what came of it."""
        ...


def conduct(study: Study[Any], context: StudyContext) -> StudyReport:
    """Measure what a study asks, and report it."""
    return study.report(study.measure(context))


def asked_of_each(models: Sequence[str], calls: Sequence[int]) -> str:
    """Say how many questions each model was asked, the one asked most first.

    >>> asked_of_each(("small", "large", "other"), (2, 1_000, 0))
    'Asked: large 1,000, small 2.'
    """
    most = sorted(zip(calls, models, strict=True), reverse=True)
    return f"Asked: {', '.join(f'{name} {count:,}' for count, name in most if count)}."


def right_interval(right: float, answered: int) -> list[float]:
    """Return the exact 95 % interval of a share of right answers, as JSON has it."""
    return list(binomial_interval(round(right), answered, LEVEL))


def file_names(paths: Sequence[Path]) -> str:
    """Return what files are called together."""
    return " + ".join(path.name for path in paths)

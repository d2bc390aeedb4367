"""What the command line shows: results on stdout, progress and remarks on stderr."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Column

if TYPE_CHECKING:
    from farthing.recommendation.base import Event

NARROWEST = 60
"""Columns that results need; a pipe has none of its own and gets 80."""
BESIDE_FIGURES = 34
"""Columns of a progress line that its bar, its count, its time and what parts them take up."""
STAGES = {"evaluate": "judging the policies", "optimum": "playing fresh questions"}
"""What is said of the stages in which nothing is trained."""
FIGURES = ("cost", "coverage", "kappa", "violation", "loss", "reward", "calls")
"""What is shown of a training; cost in units of the mean cost of a round."""
SAID_S = 30.0
"""Seconds between two lines about one training, where there is no terminal."""


def show(what: RenderableType) -> None:
    """Print a result; tables pad their lines, which nobody who is sent them needs."""
    out = Console(file=sys.stdout, highlight=False)
    if out.width < NARROWEST:
        out = Console(file=sys.stdout, highlight=False, width=NARROWEST)
    with out.capture() as drawn:
        out.print(what)
    lines = drawn.get().splitlines()
    typer.echo("\n".join(line.rstrip() for line in lines))


def show_json(record: object, *, in_a_line: bool = False) -> None:
    """Print a result as one JSON document, for another program.

    A number that does not exist is null, and an infinite one the text `inf` or `-inf`.
    """
    indent = None if in_a_line else 1
    typer.echo(json.dumps(_portable(record), indent=indent, ensure_ascii=False, allow_nan=False))


def _portable(value: Any) -> Any:
    """Return JSON values that every reader takes.

    >>> _portable({"a": (1.5, float("nan")), "b": float("-inf")})
    {'a': [1.5, None], 'b': '-inf'}
    """
    if isinstance(value, Mapping):
        return {str(name): _portable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def remark(text: str) -> None:
    """Print a remark beside the results."""
    typer.echo(text, err=True)


@contextmanager
def interruptible(kept: str) -> Iterator[None]:
    """Turn Ctrl-C into one line that says what was kept, and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        raise interrupted(kept) from None


def interrupted(kept: str) -> typer.Exit:
    """Say what an interruption left behind; the caller raises what is returned."""
    remark(f"farthing: interrupted; {kept}")
    return typer.Exit(130)


class Trainings:
    """Progress on stderr: a bar for each thing; where there is no terminal, a line now and then."""

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}
        self._clock = clock
        self._began = clock()
        self._said_s: dict[str, float] = {}

    def update(self, name: str, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Say how far something is; its bar goes when it is done."""
        written = [f"{short} {figures[short]:.3g}" for short in FIGURES if short in figures]
        if self._progress.disable:
            self._say(name, done, total, written)
        else:
            self._draw(name, done, total, written)

    def _say(self, name: str, done: int, total: int, written: Sequence[str]) -> None:
        now = self._clock()
        if done < total and now - self._said_s.get(name, self._began) >= SAID_S:
            self._said_s[name] = now
            remark("  ".join([name, f"{done}/{total}", *written]))

    def _draw(self, name: str, done: int, total: int, written: Sequence[str]) -> None:
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=total, figures="")
        text = _fitting(written, self._progress.console.width - len(name) - BESIDE_FIGURES)
        bar = self._bars[name]
        self._progress.update(bar, completed=done, total=total, figures=text, visible=done < total)

    def watch(self, event: "Event") -> None:
        """Show an event of a comparison."""
        name = event.name or STAGES[event.stage]
        self.update(name, event.done, event.total, event.figures)


def _fitting(written: Sequence[str], room: int) -> str:
    """Join as many as fit into so many columns, the first ones first.

    >>> _fitting(["cost 1.2", "coverage 0.9"], 12), _fitting(["cost 1.2"], 3)
    ('cost 1.2', '')
    """
    while len("  ".join(written)) > room and written:
        written = written[:-1]
    return "  ".join(written)


class Learning:
    """One learner's reports, as one of the bars."""

    def __init__(self, shown: Trainings, name: str) -> None:
        self._shown, self._name = shown, name

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        """Say how many updates of how many are done, and the present figures."""
        self._shown.update(self._name, done, total, figures)


@contextmanager
def trainings(clock: Callable[[], float] = time.monotonic) -> Iterator[Trainings]:
    """Show progress while the block runs; the clock says when a line is due."""
    console = Console(file=sys.stderr)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=8),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5)),
        TextColumn("{task.fields[figures]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        yield Trainings(progress, clock)

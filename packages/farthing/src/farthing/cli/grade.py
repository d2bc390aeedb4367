"""`farthing grade`: get the grades that a promise needs, and no others."""

import sys
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from farthing.cli import files
from farthing.cli.console import interruptible, remark, show
from farthing.cli.options import Alpha, BundleTraces, SplitOptions, read_dollars
from farthing.cli.promises import Given, asked_for, takes_promise
from farthing.errors import InputError
from farthing.money import nano_from_usd

if TYPE_CHECKING:
    from farthing.grading.session import GradeBook, GradePrompt, Response
    from farthing.grading.status import GradingStatus
    from farthing.promises.base import Promise
    from farthing.runtime.agents.judge import Judge

CHECKED = 0.2
"""Share of the questions that a person grades as well where a judge grades all."""
WIDE = 76


@dataclass(frozen=True)
class GradedPromise:
    """What the grades are to prove."""

    promise: Annotated[str, typer.Option(help="The promise to prove.")] = "parity"
    alpha: Alpha = Fraction(1, 10)
    given: Given = field(default_factory=dict)


@dataclass(frozen=True)
class Graders:
    """Who grades: a file that is there, a person at this terminal, a judge."""

    grades: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read grades: id and gold, or id, answer (or role) and right."
        ),
    ] = None
    ask: Annotated[bool, typer.Option("--ask", help="Ask for grades here, one at a time.")] = False
    judge: Annotated[
        str | None, typer.Option(metavar="NAME", help="Also have a model of --config grade.")
    ] = None
    config: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="The models, a TOML file.")
    ] = None
    max_cost: Annotated[
        Decimal | None,
        typer.Option(parser=read_dollars, metavar="USD", help="Cap on the judge's cost."),
    ] = None
    check: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.001,
            max=1,
            help="Share of questions drawn for people to grade; 0.2 with a judge, else 1.",
        ),
    ] = None

    def model(self, grades: Path) -> "Judge | None":
        """Return the judge, whose calls are logged beside the grades."""
        from farthing.runtime.agents.judge import Judge

        config, max_cost = self.config, self.max_cost
        if self.judge is None:
            if config is not None or max_cost is not None:
                raise InputError(
                    "--config and --max-cost go with --judge; name the model, or leave them"
                )
            return None
        if config is None or max_cost is None:
            raise InputError("--judge needs --config, where its model is, and --max-cost, its most")
        journal = grades.with_name(f"{grades.name.removesuffix('.jsonl')}.db")
        return Judge.read(config, self.judge, journal, nano_from_usd(max_cost))


@takes_promise("grade", first=("parity",))
def grade(
    recorded: BundleTraces,
    wanted: GradedPromise,
    graders: Graders,
    *,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File to append to.", show_default="beside traces"),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Questions between two checks of the proof.")
    ] = 10,
    parts: SplitOptions,
) -> None:
    """List the answers whose grades move a proof most, take grades, and say what is proved.

    Give the seed and sizes of the training. Grades are only added to a file beside the traces, each
    at once; `farthing calibrate --grades FILE` reads them.

    Example: farthing grade runs.jsonl --bundle bundle --epsilon 0.05 --delta 0.1
    --reference gpt-4o --ask
    """
    from farthing.grading.session import GradeBook, ask_judge, ask_persons
    from farthing.grading.status import GradingSession
    from farthing.traces.grades.grade_file import beside

    if out is not None:
        files.check_file(out)
    promise = asked_for(wanted.promise, wanted.alpha, wanted.given)
    traces = files.the_only(recorded.traces, "grade")
    book = GradeBook.open(traces, out or beside(traces))
    model = graders.model(book.path)
    _plan(book, promise, graders, parts.seed)
    session = GradingSession(recorded.bundle, promise, parts.split)
    if graders.grades is not None:
        _take(book, graders.grades, wanted.given.get("reference"))
    session = session.begun(book.graded())
    status = session.standing(book.graded())
    role = status.reference or ""
    _say(status)
    if model is not None:
        with interruptible(f"what the judge said is in {book.path}"):
            problem = ask_judge(book, status.judged, model, role)
        status = session.standing(book.graded())
        _say(status)
        if problem is not None:
            remark(f"the judge was not asked everything: {problem}")
    if graders.ask:
        with interruptible(f"every grade so far is in {book.path}"):
            ask_persons(book, session, role, _ask, _say, batch)
    else:
        _list(book, status, batch)


def _say(status: "GradingStatus") -> None:
    typer.echo(status.sentence())


def _plan(book: "GradeBook", promise: "Promise", graders: Graders, seed: int) -> None:
    """Say in the file how chance draws, before anything is graded by it."""
    from farthing.traces.grades.grade_file import Pairs, QuestionDraw

    graded, judge, check = book.graded(), graders.judge, graders.check
    if promise.graded_by == "judge":
        if check is not None:
            raise InputError("--check is for parity and selective; agreement counts its pairs")
        if promise.checked_pairs is not None and judge is not None:
            number = promise.checked_pairs
            book.plan(Pairs(seed=seed, number=number, judge=judge))
            remark(
                f"{number:,} questions that chance draws, with no false 'same' of {judge} on any, "
                "are needed; a person compares where it called something the same"
            )
        elif graded.pairs is None:
            raise InputError(
                "agreement takes no grades but of what a judge calls the same; name one (--judge "
                "NAME --config CONFIG --max-cost USD), or leave grades out: `farthing calibrate` "
                "proves agreement without any"
            )
        return
    before = graded.draw
    if judge is None and check is None and (promise.held_to_reference or before is not None):
        return
    share = check or (before.probability if before else CHECKED if judge else 1.0)
    book.plan(QuestionDraw(seed=before.seed if before else seed, probability=share, judge=judge))


def _take(book: "GradeBook", file: Path, reference: str | None) -> None:
    from farthing.traces.grades.grade_file import GradeTable, read_grade_table

    drawn = book.graded().drawn
    book.add(read_grade_table(file, GradeTable(book.recorded, book.wordings, reference, drawn)))


def _list(book: "GradeBook", status: "GradingStatus", most: int) -> None:
    for wanted in status.then.wanted[:most]:
        card = book.card(wanted)
        show(Text(_short(f"{book.recorded.ids[wanted.row]}: {card.question}")))
        for answer in card.answers:
            show(Text(_short(f"    {answer}")))
        if card.against is not None:
            show(Text(_short(f"    the same as: {card.against}")))
    if len(status.then.wanted) > most:
        remark(f"and {len(status.then.wanted) - most:,} more; --ask asks for them one by one")


def _ask(card: "GradePrompt") -> "Response | None":
    """Show a question and its answers, and read one line of keys; None: quit."""
    typer.echo(f"\n{card.question}")
    if card.against is not None:
        typer.echo(f"  one answer:   {card.against}")
    for number, answer in enumerate(card.answers, start=1):
        typer.echo(f"  {number}: {answer}")
    what = "the same" if card.against is not None else "right"
    single = len(card.answers) == 1
    keys = "y, n" if single else "their numbers, b (both, all), n (neither)"
    while True:
        typer.echo(f"{what}? [{keys}; s skip, q quit] ", nl=False)
        line = sys.stdin.readline()
        if not line or line.strip().casefold() in {"q", "quit"}:
            return None
        said = read_keys(line, len(card.answers))
        if said is not None:
            return dict(zip(card.codes, said, strict=True)) if said else {}


def read_keys(line: str, answers: int) -> list[bool] | None:
    """Read which answers are right; empty: skipped; None: the line says nothing.

    >>> read_keys("y", 1), read_keys("2", 2), read_keys("13", 3), read_keys("both", 2)
    ([True], [False, True], [True, False, True], [True, True])
    >>> read_keys("neither", 2), read_keys("skip", 2), read_keys("4", 2), read_keys("y", 2)
    ([False, False], [], None, None)
    """
    said = line.strip().casefold()
    if said in {"s", "skip"}:
        return []
    if said in {"n", "no", "neither", "none"}:
        return [False] * answers
    if said in {"b", "both", "all"} or (answers == 1 and said in {"y", "yes"}):
        return [True] * answers
    numbers = {str(i) for i in range(1, answers + 1)}
    if not said or not set(said) <= numbers:
        return None
    return [str(i) in said for i in range(1, answers + 1)]


def _short(text: str) -> str:
    line = text[: len(text) - len(text.lstrip())] + " ".join(text.split())
    return line if len(line) <= WIDE else f"{line[: WIDE - 3]}..."

"""`farthing grade`: get the grades that a promise needs, and no others."""

import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from farthing.cli import files
from farthing.cli.collect import read_dollars
from farthing.cli.console import interruptible, remark, show
from farthing.cli.options import (
    Alpha,
    Bundle,
    CalibrateSize,
    Seed,
    TestSize,
    TracesFiles,
    TrainSize,
    sizes_of,
)
from farthing.cli.promises import Given, asked_for, takes_promise
from farthing.errors import InputError
from farthing.money import nano_from_usd

if TYPE_CHECKING:
    from farthing.grading.session import GradeBook, GradePrompt, Response
    from farthing.grading.status import GradingStatus
    from farthing.promises.base import Promise as Asked
    from farthing.runtime.agents.judge import Judge

CHECKED = 0.2
"""Share of the questions that a person grades as well where a judge grades all."""
WIDE = 76


@takes_promise("grade", first=("parity",))
def grade(
    bundle: Bundle,
    traces: TracesFiles,
    promise: Annotated[str, typer.Option(help="What is to be proved.")] = "parity",
    alpha: Alpha = Fraction(1, 10),
    given: Given = {},  # noqa: B006 - stands for the options
    grades: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Take grades: id with gold, or with answer (or role) and right."
        ),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Ask for grades here, one by one.")] = False,
    judge: Annotated[
        str | None, typer.Option(metavar="NAME", help="Have a model of --config grade as well.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="CONFIG", help="The models, a TOML file.")
    ] = None,
    max_cost: Annotated[
        Decimal | None,
        typer.Option(parser=read_dollars, metavar="USD", help="Most that the judge may cost."),
    ] = None,
    check: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.001,
            max=1,
            help="Share of questions that chance draws for persons; 0.2 beside a judge, else 1.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where grades are kept.", show_default="beside traces"),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Questions between two looks at the proof.")
    ] = 10,
    seed: Seed = 0,
    train: TrainSize = None,
    calibrate: CalibrateSize = None,
    test: TestSize = None,
) -> None:
    """List the answers whose grades move a proof most, take grades, and say what is proved.

    Give the seed and sizes of the training. Grades are only added to a file beside the traces, each
    at once; `farthing calibrate --grades FILE` reads them.

    Example: farthing grade --bundle bundle --traces runs.jsonl --epsilon 0.05 --delta 0.1
    --reference gpt-4o --ask
    """
    from farthing.grading.session import GradeBook, ask_judge, ask_persons
    from farthing.grading.status import GradingSession
    from farthing.recommendation.bundle_splits import Split
    from farthing.traces.grades.grade_file import beside

    if out is not None:
        files.check_file(out)
    asked = asked_for(promise, alpha, given)
    recorded = files.the_only(traces, "grade")
    book = GradeBook.open(recorded, out or beside(recorded))
    model = _judge(judge, config, max_cost, book.path)
    _plan(book, asked, judge, check, seed)
    session = GradingSession(bundle, asked, Split(seed, sizes_of(train, calibrate, test)))
    if grades is not None:
        _take(book, grades, given.get("reference"))
    session = session.begun(book.graded())
    standing = session.standing(book.graded())
    role = standing.reference or ""
    _say(standing)
    if model is not None:
        with interruptible(f"what the judge said is in {book.path}"):
            left = ask_judge(book, standing.judged, model, role)
        standing = session.standing(book.graded())
        _say(standing)
        if left is not None:
            remark(f"the judge was not asked everything: {left}")
    if ask:
        with interruptible(f"every grade so far is in {book.path}"):
            ask_persons(book, session, role, _ask, _say, batch)
    else:
        _list(book, standing, batch)


def _say(standing: "GradingStatus") -> None:
    typer.echo(standing.sentence())


def _judge(
    name: str | None, config: Path | None, max_cost: Decimal | None, grades: Path
) -> "Judge | None":
    from farthing.runtime.agents.judge import Judge

    if name is None:
        if config is not None or max_cost is not None:
            raise InputError(
                "--config and --max-cost go with --judge; name the model, or leave them"
            )
        return None
    if config is None or max_cost is None:
        raise InputError("--judge needs --config, where its model is, and --max-cost, its most")
    journal = grades.with_name(f"{grades.name.removesuffix('.jsonl')}.db")
    return Judge.read(config, name, journal, nano_from_usd(max_cost))


def _plan(
    book: "GradeBook", asked: "Asked", judge: str | None, check: float | None, seed: int
) -> None:
    """Say in the file how chance draws, before anything is graded by it."""
    from farthing.traces.grades.grade_file import Draw, Pairs

    graded = book.graded()
    if asked.graded_by == "judge":
        if check is not None:
            raise InputError("--check is for parity and selective; agreement counts its pairs")
        if asked.checked_pairs is not None and judge is not None:
            number = asked.checked_pairs
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
    if asked.held_to_reference and judge is None and check is None:
        return
    before = graded.draw
    if before is not None and judge is None and check is None:
        return
    share = check or (before.probability if before else CHECKED if judge else 1.0)
    book.plan(Draw(seed=before.seed if before else seed, probability=share, judge=judge))


def _take(book: "GradeBook", file: Path, reference: str | None) -> None:
    from farthing.traces.grades.import_grades import GradeTable, read_grade_table

    drawn = book.graded().drawn
    book.add(read_grade_table(file, GradeTable(book.recorded, book.wordings, reference, drawn)))


def _list(book: "GradeBook", standing: "GradingStatus", most: int) -> None:
    for wanted in standing.then.wanted[:most]:
        card = book.card(wanted)
        show(Text(_short(f"{book.recorded.ids[wanted.row]}: {card.question}")))
        for answer in card.answers:
            show(Text(_short(f"    {answer}")))
        if card.against is not None:
            show(Text(_short(f"    the same as: {card.against}")))
    if len(standing.then.wanted) > most:
        remark(f"and {len(standing.then.wanted) - most:,} more; --ask asks for them one by one")


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

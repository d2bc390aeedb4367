"""Traces, the grades beside them, and the loop that asks for one after another.

Every grade is in the file before the next one is asked for, so that nothing is lost however the
asking ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from farthing.errors import InputError
from farthing.grading.queue import GradeRequest
from farthing.grading.status import GradingSession, GradingStatus
from farthing.recommendation.partial_grades import LabelledTraces
from farthing.runtime.agents.judge import Judge, Judgement
from farthing.tasks.base import Question
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.files import read_all_records
from farthing.traces.grades.codes import AnswerTexts
from farthing.traces.grades.grade_file import (
    GradeLine,
    Right,
    Same,
    add_grades,
    plan_of,
    read_grades,
)

BATCH = 10
"""Questions between two looks at what is proved."""


@dataclass(frozen=True)
class GradePrompt:
    """What a person is shown: nothing of it says which model gave which answer."""

    wanted: GradeRequest
    question: str
    codes: tuple[int, ...]
    """The answers in the order in which they are shown, which chance made."""
    answers: tuple[str, ...]
    against: str | None = None
    """The answer that they are compared with; None: it is asked what is right."""


Response = dict[int, bool]
"""Number of an answer to whether it is right, or the same; empty: skipped."""
AskPerson = Callable[[GradePrompt], Response | None]
"""Shows a card and returns what is said of it; None ends the asking."""
Say = Callable[[GradingStatus], None]


@dataclass(frozen=True)
class GradeBook:
    """Recorded traces and the file of grades beside them."""

    recorded: TraceArrays
    wordings: AnswerTexts
    path: Path

    @classmethod
    def open(cls, traces: Path, grades: Path) -> "GradeBook":
        """Read traces; the file of grades need not exist yet."""
        records, *_ = read_all_records([traces])
        recorded = assemble(records)
        return cls(recorded, AnswerTexts.of(records, recorded), grades)

    def graded(self) -> LabelledTraces:
        """Read the grades so far."""
        return LabelledTraces.of(self.recorded, self.wordings, read_grades(self.path))

    def add(self, lines: Sequence[GradeLine]) -> None:
        """Write grades down, and wait until they are on the disk."""
        add_grades(self.path, lines)

    def plan(self, plan: GradeLine) -> None:
        """Say once how chance draws; the same again changes nothing."""
        before = plan_of(read_grades(self.path), type(plan))
        if before is None:
            self.add([plan])
        elif before != plan:
            raise InputError(
                f"{self.path}: draws by {_described(before)}, and {_described(plan)} is asked for; "
                "a promise holds by one draw: leave it, or begin another file (--out)"
            )

    def card(self, wanted: GradeRequest) -> GradePrompt:
        """Return what a person is shown of a question."""
        name, texts = str(self.recorded.ids[wanted.row]), self.wordings.texts[wanted.row]
        codes = sorted(wanted.codes, key=lambda c: sha256(f"{name}\x1f{c}".encode()).digest())
        against = None if wanted.against is None else texts[wanted.against]
        questions = self.recorded.question
        return GradePrompt(
            wanted,
            "" if questions is None else str(questions[wanted.row]),
            tuple(codes),
            tuple(texts[c] for c in codes),
            against,
        )

    def lines(self, wanted: GradeRequest, said: Response, whose: "Grader") -> list[GradeLine]:
        """Return the lines that say what was found out."""
        name, texts = str(self.recorded.ids[wanted.row]), self.wordings.texts[wanted.row]
        judge, reference = whose.judge, whose.reference
        probability = None if judge else self.graded().drawn.get(name)
        if wanted.against is not None:
            return [
                Same(id=name, answer=texts[c], reference=reference, same=same, judge=judge)
                for c, same in said.items()
            ]
        return [
            Right(id=name, answer=texts[c], right=right, judge=judge, probability=probability)
            for c, right in said.items()
        ]


@dataclass(frozen=True)
class Grader:
    """Who grades, and what."""

    judge: str | None = None
    """A model; None: a person."""
    reference: str = ""
    """The role that answers are compared with, where they are."""


def ask_persons(
    book: GradeBook,
    session: GradingSession,
    reference: str,
    ask: AskPerson,
    say: Say,
    batch: int = BATCH,
) -> None:
    """Ask for one grade after another, the best first, until nothing is to be asked.

    A person is told what is proved after each batch, and at the end.
    """
    skipped: set[int] = set()
    while True:
        graded = book.graded()
        standing = session.standing(graded)
        say(standing)
        waiting = (one for one in standing.then.wanted if one.row not in skipped)
        asked = 0
        for wanted in islice(waiting, batch):
            said = ask(book.card(wanted))
            if said is None:
                say(session.standing(book.graded()))
                return
            skipped |= set() if said else {wanted.row}
            book.add(book.lines(wanted, said, Grader(None, reference)))
            asked += 1
        if not asked:
            return


def ask_judge(
    book: GradeBook, wanted: Sequence[GradeRequest], judge: Judge, reference: str
) -> str | None:
    """Have a judge say of every wanted answer what it has not said yet.

    Returns:
        Why not all were asked; None: they were.
    """
    whose = Grader(judge.name, reference)
    said = {
        (line.id, line.answer)
        for line in read_grades(book.path)
        if isinstance(line, Right | Same) and line.judge == judge.name
    }
    judgements, places = [], {}
    for one in wanted:
        name, texts = str(book.recorded.ids[one.row]), book.wordings.texts[one.row]
        question = Question(name, book.card(one).question)
        for code in one.codes:
            if (name, texts[code]) not in said:
                other = None if one.against is None else texts[one.against]
                judgements.append(Judgement(question, texts[code], other))
                places[name, texts[code]] = (one, code)

    def keep(found: Judgement) -> None:
        one, code = places[found.question.id, found.answer]
        book.add(book.lines(one, {code: bool(found.says)}, whose))

    return judge.ask(judgements, keep)


def _described(plan: GradeLine) -> str:
    fields = ((name, getattr(plan, name)) for name in plan.__struct_fields__)
    return ", ".join(f"{name} {value}" for name, value in fields if value is not None)

"""`farthing ask`: answer questions with live models, and pay no more than the policy says."""

from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from farthing.cli.console import remark, show, show_json
from farthing.cli.options import Bundle, Json, read_dollars
from farthing.money import nano_from_usd

if TYPE_CHECKING:
    from farthing.runtime.answer import Answer
    from farthing.runtime.job import Job
    from farthing.tasks.base import Question


def ask(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The job that the traces were collected with.")
    ],
    bundle: Bundle,
    question: Annotated[
        str | None, typer.Argument(metavar="[QUESTION]", help="The question to ask.")
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Ask every question in a file; print one JSON line each."
        ),
    ] = None,
    max_cost: Annotated[
        Decimal | None,
        typer.Option(parser=read_dollars, metavar="USD", help="Largest cost of a question."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Record the calls here, so that none is paid for twice."),
    ] = None,
    escalate: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Ask this model of the job where a selective bundle abstains, without a promise.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Answer with as few calls as the bundle's policy needs, and say what is promised.

    Exit code 1: a model could not be asked, so that a question ended before its time.

    Example: farthing ask job.toml --bundle bundle "What is the capital of Portugal?"
    """
    from farthing.bundle import folder as bundles
    from farthing.runtime.job import read_job
    from farthing.runtime.runner import Payment, answer_all

    policy, job = bundles.load(bundle), read_job(config)
    job = job if escalate is None else job.escalating(escalate)
    asked = _asked(job, question, questions)
    lines = as_json or questions is not None
    failed = []

    def shown(answer: "Answer") -> None:
        if lines:
            show_json(answer.to_json(), in_a_line=True)
        else:
            show(Text(str(answer)))
        failed.append(answer.ended_by == "failure")

    answer_all(
        job,
        policy,
        asked,
        payment=Payment(None if max_cost is None else nano_from_usd(max_cost), store),
        show=shown,
        doubt=lambda clause: remark(f"note: no promise holds: {clause}"),
    )
    if any(failed):
        raise typer.Exit(1)


def _asked(job: "Job", question: str | None, file: Path | None) -> "list[Question]":
    from farthing.tasks.base import Question
    from farthing.tasks.questions import load_questions

    if (question is None) == (file is None):
        raise typer.BadParameter("give either a question or --questions FILE")
    if file is not None:
        return load_questions(job.section.task, file, graded=False)
    if question is None or not question.strip():
        raise typer.BadParameter("the question is empty; give its text")
    return [Question(f"ask-{sha256(question.encode()).hexdigest()[:12]}", question)]

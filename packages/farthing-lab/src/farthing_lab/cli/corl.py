"""`farthing corl`: a controller LLM that answers itself or calls experts, under a budget mode."""

from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from farthing.cli.command import PlainGroup
from farthing.cli.console import interruptible, remark, show, show_json, trainings
from farthing.cli.options import Json, Seed, read_dollars
from farthing.cli.promises import Given, takes_promise, with_defaults
from farthing.money import nano_from_usd
from farthing_lab.cli import corl_training
from farthing_lab.cli.corl_training import check_weights

if TYPE_CHECKING:
    from farthing_lab.corl.pool import ControllerPool

app = typer.Typer(
    cls=PlainGroup,
    help="Teach, train, evaluate and run a controller LLM that calls experts.",
    no_args_is_help=True,
)
PoolName = Annotated[
    str | None,
    typer.Option(
        "--pool",
        metavar="two|four|FILE",
        show_default="the controller's own",
        help="The experts and the questions: one that ships, or a TOML file.",
    ),
]
Trained = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]", help="A trained controller.", show_default="the one that ships"
    ),
]


app.command()(corl_training.warm)
app.command()(corl_training.train)


@app.command()
def evaluate(
    controller: Trained = None,
    pool: PoolName = None,
    n: Annotated[int, typer.Option("--n", min=2, metavar="N", help="Fresh questions.")] = 500,
    seed: Seed = 0,
    budget: Annotated[
        Decimal | None,
        typer.Option(
            parser=read_dollars, metavar="USD", help="Most that a question may cost in any mode."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play fresh questions in each mode, beside the best fixed plans and simple ways to choose.

    Example: farthing corl evaluate controller --n 500
    """
    chosen, _ = _pool(controller, pool)
    check_weights(chosen)
    from farthing_lab.corl.evaluation import evaluate as evaluate_controller
    from farthing_lab.corl.session import PoolSession
    from farthing_lab.reports.corl import evaluation, evaluation_record

    hard = None if budget is None else nano_from_usd(budget)
    with interruptible("nothing was kept"), PoolSession.of(chosen) as opened, trainings() as shown:

        def watch(done: int, steps: int) -> None:
            shown.update("evaluating", done, steps, {})

        found = evaluate_controller(opened, n, seed, hard_nano=hard, watch=watch)
    _say_fewer(found.questions, n)
    if as_json:
        show_json(evaluation_record(found))
    else:
        show(evaluation(found))


@dataclass(frozen=True)
class CertifiedPromise:
    """What a mode is to keep, beside an expert."""

    promise: Annotated[
        str,
        typer.Option(help="As often right as an expert, or the answer that it would have given."),
    ] = "parity"
    given: Given = field(default_factory=dict)
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The expert.", show_default="the one right most often in training"
        ),
    ] = None


@app.command()
@takes_promise("certify")
def certify(
    controller: Trained = None,
    pool: PoolName = None,
    *,
    wanted: CertifiedPromise,
    n: Annotated[
        int, typer.Option("--n", min=2, metavar="N", help="Questions that prove, and that measure.")
    ] = 1_000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say which mode keeps a promise for the least money, and prove it.

    Exit code 1: no mode that is cheaper than the expert is proved.

    Example: farthing corl certify controller --promise parity --epsilon 0.02 --delta 0.1
    """
    promise = with_defaults(wanted.promise, None, wanted.given).beside(wanted.reference)
    chosen, _ = _pool(controller, pool)
    check_weights(chosen)
    from farthing_lab.corl.certificate import certify as certify_controller
    from farthing_lab.corl.session import PoolSession
    from farthing_lab.reports.corl_certificate import certified, certified_record

    with interruptible("nothing was kept"), PoolSession.of(chosen) as opened, trainings() as shown:

        def watch(done: int, steps: int) -> None:
            shown.update("certifying", done, steps, {})

        found = certify_controller(opened, promise, n, seed, watch=watch)
    for part in ("calibrate", "test"):
        _say_fewer(found.sizes[part], n, part)
    if as_json:
        show_json(certified_record(found))
    else:
        show(certified(found))
    if found.mode is None:
        raise typer.Exit(1)


@app.command()
def run(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What to ask.")],
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="the one in the middle",
            help="How dear an answer may be: low, medium, high in the pools that ship.",
        ),
    ] = None,
    budget: Annotated[
        Decimal | None,
        typer.Option(
            parser=read_dollars, metavar="USD", help="Most that may be paid, whatever the mode."
        ),
    ] = None,
    controller: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", show_default="the one that ships", help="A trained controller."
        ),
    ] = None,
    pool: PoolName = None,
    as_json: Json = False,
) -> None:
    """Answer one question live, and say what each step cost.

    Exit code 1: the controller came to no answer.

    Example: farthing corl run "c=b+2;a=4;b=a+5;c?" --mode high
    """
    chosen, costs = _pool(controller, pool)
    if chosen.hooks:
        remark(f"note: it learned under {', '.join(chosen.hooks)}; live, no hook is applied")
    from farthing_lab.corl.live import ask
    from farthing_lab.reports.corl import live, live_record

    nano = None if budget is None else nano_from_usd(budget)
    middle = chosen.modes[(len(chosen.modes) - 1) // 2]  # of two the cheaper one
    found = ask(
        chosen,
        question,
        middle.name if mode is None else mode,
        budget_nano=nano,
        known_usd=costs,
    )
    if as_json:
        show_json(live_record(found))
    else:
        show(live(found))
    if found.done.episode.answer is None:
        raise typer.Exit(1)


def _pool(controller: Path | None, name: str | None) -> "tuple[ControllerPool, dict[str, float]]":
    """Return the pool with its controller, and what calls cost on average, where that is known."""
    from farthing_lab.corl.checkpoint import pool_of

    found = pool_of(controller, name)
    return found.pool, found.card.call_cost_usd if found.card else {}


def _say_fewer(n: int, asked: int, part: str = "test") -> None:
    if n < asked:
        remark(f"note: {n:,} of the {asked:,} questions; there are no more of the part {part}")

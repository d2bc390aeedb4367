"""`farthing corl`: a controller LLM that answers itself or calls experts, under a budget mode."""

import logging
from dataclasses import asdict, replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farthing.cli.collect import read_dollars
from farthing.cli.console import counted, interruptible, remark, show, show_json, trainings
from farthing.cli.files import check_folder
from farthing.cli.flags import PlainGroup
from farthing.cli.options import Json, Seed
from farthing.cli.promises import Delta, Epsilon
from farthing.cli.recommend import held_to
from farthing.errors import InputError, MissingExtraError
from farthing.money import nano_from_usd, significant

if TYPE_CHECKING:
    from farthing.experiments.corl.pool import Pool
    from farthing.methods.controllers.learner import Log

app = typer.Typer(
    cls=PlainGroup,
    help="Teach, train, evaluate and run a controller LLM that calls experts.",
    no_args_is_help=True,
)
CURVES = "curves.png"
"""What is drawn of a training, in the controller's folder."""
PoolName = Annotated[
    str | None,
    typer.Option(
        "--pool",
        metavar="two|four|FILE",
        show_default="the controller's own",
        help="The experts and the questions: one that ships, or a TOML file.",
    ),
]
TaughtPool = Annotated[
    str,
    typer.Option(
        "--pool",
        metavar="two|four|FILE",
        help="The experts and the questions: one that ships, or a TOML file.",
    ),
]
Trained = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]", help="A trained controller.", show_default="the one that ships"
    ),
]


@app.command()
def warm(
    pool: TaughtPool,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the controller goes.")],
    lora: Annotated[
        int,
        typer.Option(min=0, metavar="RANK", help="Rank of the adapter that learns; 0: all learns."),
    ] = 16,
    steps: Annotated[
        int, typer.Option(min=8, metavar="N", help="Steps of 16 examples; a multiple of 8.")
    ] = 160,
    questions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Questions; each expert is asked all of them.")
    ] = 400,
    seed: Seed = 0,
) -> None:
    """Teach a controller by examples how to answer, call and read a reply; run it again to go on.

    Example: farthing corl warm --pool pool.toml --out warm
    """
    from farthing.experiments.corl.folder import check_out
    from farthing.experiments.corl.pool import find

    check_folder(out)
    check_out(out)
    chosen = find(pool)
    _check_weights(chosen)
    from farthing.experiments.corl.opened import Opened
    from farthing.experiments.corl.warm import COURSE, Plan
    from farthing.experiments.corl.warm import warm as warm_controller
    from farthing.lm.supervised import Progress

    plan = Plan(lora, questions, replace(COURSE, steps=steps), seed)
    kept = f"{out} holds what is needed; the same command goes on"
    with interruptible(kept), Opened.of(chosen) as opened, trainings() as shown:

        def watch(done: Progress) -> None:
            shown.update("corl", done.step, steps, {"loss": done.loss})

        done = warm_controller(opened, plan, out, watch)
    typer.echo(f"loss {done.loss:.3f} nats a token after {done.step} steps")
    typer.echo(f"controller: {out}")
    typer.echo(f"Next: farthing corl train --pool {pool} --controller {out} --out FOLDER")


@app.command()
def train(
    pool: TaughtPool,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the controller goes.")],
    controller: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", show_default="the pool's", help="The weights that it begins with."
        ),
    ] = None,
    advantage: Annotated[
        Literal["gae", "group"], typer.Option(help="By a value model (PPO), or by group (GRPO).")
    ] = "group",
    reward: Annotated[
        str, typer.Option(metavar="NAME", help="hard-gate, soft-gate, router-r1, or a plug-in's.")
    ] = "hard-gate",
    sampler: Annotated[
        str, typer.Option(metavar="NAME", help="Plays the episodes: rollouts, or a plug-in's.")
    ] = "rollouts",
    hook: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What it writes under: no-calls, thinking-limit, or a plug-in's; may be repeated.",
            show_default="none",
        ),
    ] = None,
    updates: Annotated[int, typer.Option(min=1, metavar="N", help="Updates.")] = 80,
    prompts: Annotated[int, typer.Option(min=1, metavar="N", help="Questions an update.")] = 64,
    rollouts: Annotated[int, typer.Option(min=1, metavar="N", help="Episodes a question.")] = 8,
    allocation: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Shares the episodes of an update: even, uncertain, or a plug-in's.",
        ),
    ] = "even",
    prompt: Annotated[
        Literal["compact", "plain", "forbidding"] | None,
        typer.Option(show_default="the pool's", help="How the controller is told of its mode."),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Teach a controller by reinforcement when to call whom; run it again to go on.

    Example: farthing corl train --pool four --out controller
    """
    from farthing import plugins
    from farthing.experiments.corl.folder import check_out, pool_to_train

    check_folder(out)
    check_out(out)
    if advantage == "group" and rollouts < 2:
        raise InputError("--advantage group compares episodes of a question; give --rollouts 2")
    plugins.load("rewards", reward)
    plugins.load("allocations", allocation)
    chosen = replace(pool_to_train(pool, controller, prompt), hooks=tuple(hook or ()))
    _check_weights(chosen)
    plugins.load("samplers", sampler)
    from farthing.experiments.corl.opened import Opened
    from farthing.experiments.corl.training import Plan
    from farthing.experiments.corl.training import train as train_controller
    from farthing.lm.masked_ppo import Settings
    from farthing.methods.controllers.learner import Course, Update

    plan = Plan(
        reward=reward,
        sampler=sampler,
        allocation=allocation,
        course=Course(updates, prompts, rollouts),
        settings=Settings(advantage=advantage),
        seed=seed,
    )
    kept = f"{out} holds what is needed; the same command goes on"
    with interruptible(kept), Opened.of(chosen) as opened, trainings() as shown:

        def watch(update: Update) -> None:
            figures = {"reward": update.reward, "calls": update.call_ratio}
            shown.update("corl", update.update, updates, figures)

        log = train_controller(opened, plan, out, watch)
    _draw(log, [mode.name for mode in chosen.modes], out)
    _say_trained(log, out)


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
    _check_weights(chosen)
    from farthing.experiments.corl.evaluate import evaluate as evaluate_controller
    from farthing.experiments.corl.opened import Opened
    from farthing.reports.corl import evaluation, evaluation_record

    hard = None if budget is None else nano_from_usd(budget)
    with interruptible("nothing was kept"), Opened.of(chosen) as opened, trainings() as shown:

        def watch(done: int, steps: int) -> None:
            shown.update("evaluating", done, steps, {})

        found = evaluate_controller(opened, n, seed, hard_nano=hard, watch=watch)
    if as_json:
        show_json(evaluation_record(found))
    else:
        show(evaluation(found))


@app.command()
def certify(
    controller: Trained = None,
    pool: PoolName = None,
    promise: Annotated[
        Literal["parity", "agreement"],
        typer.Option(help="As often right as an expert, or the answer that it would have given."),
    ] = "parity",
    epsilon: Epsilon = None,
    delta: Delta = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The expert.", show_default="the one right most often in training"
        ),
    ] = None,
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
    asked = held_to(reference, promise, epsilon, delta)
    chosen, _ = _pool(controller, pool)
    _check_weights(chosen)
    from farthing.experiments.corl.certify import certify as certify_controller
    from farthing.experiments.corl.opened import Opened
    from farthing.reports.corl_certificate import certified, certified_record

    with interruptible("nothing was kept"), Opened.of(chosen) as opened, trainings() as shown:

        def watch(done: int, steps: int) -> None:
            shown.update("certifying", done, steps, {})

        found = certify_controller(opened, asked, n, seed, watch=watch)
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
            metavar="low|medium|high", show_default="medium", help="How dear an answer may be."
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
    _quiet()
    from farthing.experiments.corl.live import ask
    from farthing.reports.corl import live, live_record

    nano = None if budget is None else nano_from_usd(budget)
    found = ask(chosen, question, mode or _middle(chosen), budget_nano=nano, known_usd=costs)
    if as_json:
        show_json(live_record(found))
    else:
        show(live(found))
    if found.done.episode.answer is None:
        raise typer.Exit(1)


def _pool(controller: Path | None, name: str | None) -> "tuple[Pool, dict[str, float]]":
    """Return the pool with its controller, and what calls cost on average, where that is known."""
    from farthing.experiments.corl.folder import pool_of

    found = pool_of(controller, name)
    return found.pool, found.card.call_cost_usd if found.card else {}


def _middle(pool: "Pool") -> str:
    return pool.modes[len(pool.modes) // 2].name


def _check_weights(pool: "Pool") -> None:
    """Refuse what cannot be loaded, before PyTorch is."""
    pool.weights()
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("a controller of one's own", "lm")
    _quiet()


def _quiet() -> None:
    """Leave out that a convolution could be faster: not in networks of this size."""
    logging.getLogger("transformers.integrations.hub_kernels").setLevel(logging.ERROR)


def _draw(log: "Log", modes: list[str], out: Path) -> None:
    try:
        from farthing.reports.corl_curves import curves
    except MissingExtraError as error:
        remark(f"note: no curves were drawn; {error}")
        return
    curves([asdict(one) for one in log.updates], modes).savefig(out / CURVES, dpi=100)


def _say_trained(log: "Log", out: Path) -> None:
    last = log.updates[-1]
    if log.stopped:
        remark(f"note: stopped after {counted(len(log.updates), 'update')}: {log.stopped}")
    typer.echo(
        f"${significant(last.cost_usd)} a question, reward {last.reward:.3f}, experts called on "
        f"{last.call_ratio:.3f} of the questions in update {last.update}"
    )
    typer.echo(f"controller: {out}")
    typer.echo(f"Next: farthing corl evaluate {out}")

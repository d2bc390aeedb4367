"""`farthing corl`: a controller LLM that answers itself or calls experts, under a budget mode.

`warm` and `train` teach it: by examples, then by reinforcement.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farthing.cli.command import PlainGroup, takes_options
from farthing.cli.console import interruptible, remark, show, show_json, trainings
from farthing.cli.files import check_folder
from farthing.cli.options import Device, Json, Seed, read_dollars
from farthing.cli.promises import Given, takes_promise, with_defaults
from farthing.errors import InputError, MissingExtraError
from farthing.money import nano_from_usd, significant
from farthing.reports.table import counted

if TYPE_CHECKING:
    from farthing.cli.console import Trainings
    from farthing_lab.corl.learner import TrainingLog
    from farthing_lab.corl.pool import ControllerPool
    from farthing_lab.corl.rollouts import PoolSession

app = typer.Typer(
    cls=PlainGroup,
    help="Train, evaluate and run a controller LLM that calls experts.",
    no_args_is_help=True,
)
PoolName = Annotated[
    str | None,
    typer.Option(
        "--pool",
        metavar="two|four|FILE",
        show_default="the controller's own",
        help="The pool of experts and questions: a built-in one, or a TOML file.",
    ),
]
Trained = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]", help="A trained controller.", show_default="the one that ships"
    ),
]


CURVES = "curves.png"
"""What is drawn of a training, in the controller's folder."""
TaughtPool = Annotated[
    str,
    typer.Option(
        "--pool",
        metavar="two|four|FILE",
        help="The pool of experts and questions: a built-in one, or a TOML file.",
    ),
]


@app.command()
def warm(
    pool: TaughtPool,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write the controller to.")],
    lora: Annotated[
        int,
        typer.Option(min=0, metavar="RANK", help="Rank of the LoRA adapter; 0: train all weights."),
    ] = 16,
    steps: Annotated[
        int, typer.Option(min=8, metavar="N", help="Steps of 16 examples; a multiple of 8.")
    ] = 160,
    questions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Questions; every expert gets each.")
    ] = 400,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Teach a controller by examples how to answer, call and read a reply; run it again to go on.

    Example: farthing corl warm --pool pool.toml --out warm
    """
    from farthing_lab.corl.pool import check_out, find

    check_folder(out)
    check_out(out)
    chosen = find(pool)
    check_weights(chosen)
    from farthing_lab.corl.training import COURSE, WarmStartPlan, warm_start
    from farthing_lab.lm.supervised import TrainingProgress

    plan = WarmStartPlan(lora, questions, replace(COURSE, steps=steps), seed)
    kept = f"{out} holds what is needed; the same command goes on"
    with _opened(chosen, kept, device) as (opened, shown):

        def watch(done: TrainingProgress) -> None:
            shown.update("corl", done.step, steps, {"loss": done.loss})

        done = warm_start(opened, plan, out, watch)
    typer.echo(f"loss {done.loss:.3f} nats a token after {done.step} steps")
    typer.echo(f"controller: {out}")
    typer.echo(f"Next: farthing corl train --pool {pool} --controller {out} --out FOLDER")


@dataclass(frozen=True)
class LearningOptions:
    """What an episode earns, how that is credited, and who plays under which hooks."""

    advantage: Annotated[
        Literal["gae", "group", "shrunk"],
        typer.Option(
            help="By a value model (PPO), by group (GRPO), or by group drawn towards what was "
            "expected (V_0.5)."
        ),
    ] = "group"
    reward: Annotated[
        str, typer.Option(metavar="NAME", help="hard-gate, soft-gate, router-r1, or a plug-in.")
    ] = "hard-gate"
    sampler: Annotated[
        str, typer.Option(metavar="NAME", help="What plays the episodes: rollouts, or a plug-in.")
    ] = "rollouts"
    hook: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Output constraint: no-calls, thinking-limit, or a plug-in; may be repeated.",
            show_default="none",
        ),
    ] = None


@dataclass(frozen=True)
class CourseOptions:
    """How many episodes each of how many updates learns from, and how those are shared."""

    updates: Annotated[int, typer.Option(min=1, metavar="N", help="Number of updates.")] = 80
    prompts: Annotated[int, typer.Option(min=1, metavar="N", help="Questions per update.")] = 64
    rollouts: Annotated[int, typer.Option(min=1, metavar="N", help="Episodes per question.")] = 8
    allocation: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Shares the episodes of an update: even, uncertain, knapsack, duet, or a "
            "plug-in's.",
        ),
    ] = "even"


@app.command()
@takes_options
def train(
    pool: TaughtPool,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write the controller to.")],
    *,
    controller: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default="the pool's", help="Initial weights."),
    ] = None,
    lesson: LearningOptions,
    course: CourseOptions,
    prompt: Annotated[
        Literal["compact", "plain", "forbidding"] | None,
        typer.Option(show_default="the pool's", help="How the prompt states the mode."),
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Teach a controller by reinforcement when to call whom; run it again to go on.

    Example: farthing corl train --pool four --out controller
    """
    from farthing import plugins
    from farthing_lab.corl.pool import check_out, pool_to_train

    check_folder(out)
    check_out(out)
    if lesson.advantage == "group" and course.rollouts < 2:
        raise InputError("--advantage group compares episodes of a question; give --rollouts 2")
    plugins.load("rewards", lesson.reward)
    plugins.load("allocations", course.allocation)
    chosen = replace(pool_to_train(pool, controller, prompt), hooks=tuple(lesson.hook or ()))
    check_weights(chosen)
    plugins.load("samplers", lesson.sampler)
    from farthing_lab.corl.learner import TrainingSchedule, Update
    from farthing_lab.corl.training import TrainingPlan
    from farthing_lab.corl.training import train as train_controller
    from farthing_lab.lm.masked_ppo import Settings

    plan = TrainingPlan(
        reward=lesson.reward,
        sampler=lesson.sampler,
        allocation=course.allocation,
        course=TrainingSchedule(course.updates, course.prompts, course.rollouts),
        settings=Settings(advantage=lesson.advantage),
        seed=seed,
    )
    kept = f"{out} holds what is needed; the same command goes on"
    with _opened(chosen, kept, device) as (opened, shown):

        def watch(update: Update) -> None:
            figures = {"reward": update.reward, "calls": update.call_ratio}
            shown.update("corl", update.update, course.updates, figures)

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
            parser=read_dollars, metavar="USD", help="Largest cost of a question, in any mode."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Play fresh questions in each mode, beside the best fixed plans and simple ways to choose.

    Example: farthing corl evaluate controller --n 500
    """
    from farthing_lab.corl.pool import pool_of

    chosen = pool_of(controller, pool).pool
    check_weights(chosen)
    from farthing_lab.corl.evaluation import evaluate as evaluate_controller
    from farthing_lab.reports.corl import evaluation, evaluation_record

    hard = None if budget is None else nano_from_usd(budget)
    with _opened(chosen, "nothing was kept") as (opened, shown):
        watch = _watch(shown, "evaluating")
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
        typer.Option(help="Parity: as accurate as an expert; agreement: the expert's own answer."),
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
        int, typer.Option("--n", min=2, metavar="N", help="Questions that prove; as many measure.")
    ] = 1_000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say which mode keeps a promise for the least money, and prove it.

    Exit code 1: no mode that is cheaper than the expert is proved.

    Example: farthing corl certify controller --promise parity --epsilon 0.02 --delta 0.1
    """
    promise = with_defaults(wanted.promise, None, wanted.given).beside(wanted.reference)
    from farthing_lab.corl.pool import pool_of

    chosen = pool_of(controller, pool).pool
    check_weights(chosen)
    from farthing_lab.corl.certificate import certify as certify_controller
    from farthing_lab.reports.corl import certified, certified_record

    with _opened(chosen, "nothing was kept") as (opened, shown):
        watch = _watch(shown, "certifying")
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
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question to ask.")],
    mode: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default="the one in the middle",
            help="Budget mode: low, medium or high in the built-in pools.",
        ),
    ] = None,
    budget: Annotated[
        Decimal | None,
        typer.Option(
            parser=read_dollars, metavar="USD", help="Hard limit on the cost, in any mode."
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
    from farthing_lab.corl.pool import pool_of

    playing = pool_of(controller, pool)
    chosen, card = playing.pool, playing.card
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
        known_usd=card.call_cost_usd if card else {},
    )
    if as_json:
        show_json(live_record(found))
    else:
        show(live(found))
    if found.done.episode.answer is None:
        raise typer.Exit(1)


@contextmanager
def _opened(
    pool: "ControllerPool", lost: str, device: str = "cpu"
) -> "Iterator[tuple[PoolSession, Trainings]]":
    """Open a pool, and show how far the work on it is; Ctrl-C says what is `lost`."""
    from farthing_lab.corl.rollouts import PoolSession

    with interruptible(lost), PoolSession.of(pool, device) as opened, trainings() as shown:
        yield opened, shown


def _watch(shown: "Trainings", name: str) -> Callable[[int, int], None]:
    return lambda done, steps: shown.update(name, done, steps, {})


def _say_fewer(n: int, asked: int, part: str = "test") -> None:
    if n < asked:
        remark(f"note: {n:,} of the {asked:,} questions; there are no more of the part {part}")


def check_weights(pool: "ControllerPool") -> None:
    """Refuse what cannot be loaded, before PyTorch is."""
    pool.weights()
    if find_spec("torch") is None or find_spec("transformers") is None:
        raise MissingExtraError("a controller of one's own", "lm", "farthing-lab")


def _draw(log: "TrainingLog", modes: list[str], out: Path) -> None:
    try:
        from farthing_lab.reports.training import controller_curves
    except MissingExtraError as error:
        remark(f"note: no curves were drawn; {error}")
        return
    controller_curves([asdict(one) for one in log.updates], modes).savefig(out / CURVES, dpi=100)


def _say_trained(log: "TrainingLog", out: Path) -> None:
    last = log.updates[-1]
    if log.stopped:
        remark(f"note: stopped after {counted(len(log.updates), 'update')}: {log.stopped}")
    typer.echo(
        f"${significant(last.cost_usd)} a question, reward {last.reward:.3f}, experts called on "
        f"{last.call_ratio:.3f} of the questions in update {last.update}"
    )
    typer.echo(f"controller: {out}")
    typer.echo(f"Next: farthing corl evaluate {out}")

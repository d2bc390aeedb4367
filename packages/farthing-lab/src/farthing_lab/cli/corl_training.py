"""`farthing corl warm` and `train`: teach a controller by examples, then by reinforcement."""

from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farthing.cli.command import takes_options
from farthing.cli.console import interruptible, remark, trainings
from farthing.cli.files import check_folder
from farthing.cli.options import Device, Seed
from farthing.errors import InputError, MissingExtraError
from farthing.money import significant
from farthing.reports.table import counted

if TYPE_CHECKING:
    from farthing_lab.corl.learner import TrainingLog
    from farthing_lab.corl.pool import ControllerPool

CURVES = "curves.png"
"""What is drawn of a training, in the controller's folder."""
TaughtPool = Annotated[
    str,
    typer.Option(
        "--pool",
        metavar="two|four|FILE",
        help="The experts and the questions: one that ships, or a TOML file.",
    ),
]


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
    device: Device = "cpu",
) -> None:
    """Teach a controller by examples how to answer, call and read a reply; run it again to go on.

    Example: farthing corl warm --pool pool.toml --out warm
    """
    from farthing_lab.corl.checkpoint import check_out
    from farthing_lab.corl.pool import find

    check_folder(out)
    check_out(out)
    chosen = find(pool)
    check_weights(chosen)
    from farthing_lab.corl.session import PoolSession
    from farthing_lab.corl.training import COURSE, WarmStartPlan, warm_start
    from farthing_lab.lm.supervised import TrainingProgress

    plan = WarmStartPlan(lora, questions, replace(COURSE, steps=steps), seed)
    kept = f"{out} holds what is needed; the same command goes on"
    with interruptible(kept), PoolSession.of(chosen, device) as opened, trainings() as shown:

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
        str, typer.Option(metavar="NAME", help="hard-gate, soft-gate, router-r1, or a plug-in's.")
    ] = "hard-gate"
    sampler: Annotated[
        str, typer.Option(metavar="NAME", help="Plays the episodes: rollouts, or a plug-in's.")
    ] = "rollouts"
    hook: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What it writes under: no-calls, thinking-limit, or a plug-in's; may be repeated.",
            show_default="none",
        ),
    ] = None


@dataclass(frozen=True)
class CourseOptions:
    """How many episodes each of how many updates learns from, and how those are shared."""

    updates: Annotated[int, typer.Option(min=1, metavar="N", help="Updates.")] = 80
    prompts: Annotated[int, typer.Option(min=1, metavar="N", help="Questions an update.")] = 64
    rollouts: Annotated[int, typer.Option(min=1, metavar="N", help="Episodes a question.")] = 8
    allocation: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Shares the episodes of an update: even, uncertain, knapsack, duet, or a "
            "plug-in's.",
        ),
    ] = "even"


@takes_options
def train(
    pool: TaughtPool,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the controller goes.")],
    *,
    controller: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", show_default="the pool's", help="The weights that it begins with."
        ),
    ] = None,
    lesson: LearningOptions,
    course: CourseOptions,
    prompt: Annotated[
        Literal["compact", "plain", "forbidding"] | None,
        typer.Option(show_default="the pool's", help="How the controller is told of its mode."),
    ] = None,
    seed: Seed = 0,
    device: Device = "cpu",
) -> None:
    """Teach a controller by reinforcement when to call whom; run it again to go on.

    Example: farthing corl train --pool four --out controller
    """
    from farthing import plugins
    from farthing_lab.corl.checkpoint import check_out, pool_to_train

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
    from farthing_lab.corl.session import PoolSession
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
    with interruptible(kept), PoolSession.of(chosen, device) as opened, trainings() as shown:

        def watch(update: Update) -> None:
            figures = {"reward": update.reward, "calls": update.call_ratio}
            shown.update("corl", update.update, course.updates, figures)

        log = train_controller(opened, plan, out, watch)
    _draw(log, [mode.name for mode in chosen.modes], out)
    _say_trained(log, out)


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

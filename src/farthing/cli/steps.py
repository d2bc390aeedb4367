"""`farthing steps`: tasks of several steps, a small or a large model at each, one budget a task."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from farthing.cli.console import Learning, interruptible, remark, show, show_json, trainings
from farthing.cli.options import Json, Seed, read_usd
from farthing.money import NANO_PER_USD, dollars
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table

if TYPE_CHECKING:
    from farthing.methods.routers.bopo.episodes import Chain
    from farthing.methods.routers.bopo.learner import Learned
    from farthing.studies.step_routing import Row

TASKS = {
    "generated": "made-up tasks",
    "embedded": "chains of arithmetic before two embedded networks",
}


def steps(
    on: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="generated: made-up tasks whose optimum is known; embedded: chains of arithmetic "
            "before two networks on this machine.",
        ),
    ] = "generated",
    budget: Annotated[
        Fraction | None,
        typer.Option(parser=read_usd, metavar="USD", help="Most that a task may cost."),
    ] = None,
    price: Annotated[
        list[float] | None,
        typer.Option(
            "--lambda",
            metavar="X",
            min=0.0,
            help="What all steps large instead of small cost, as a share of a success; give it "
            "again for several.  [default: 0.1, 0.3, 0.6]",
            show_default=False,
        ),
    ] = None,
    train: Annotated[int, typer.Option(metavar="N", min=10, help="Tasks to learn from.")] = 200,
    test: Annotated[int, typer.Option(metavar="N", min=10, help="Tasks to judge on.")] = 400,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Choose a small or a large model at each step of a task, never over the task's budget.

    BoPO learns it from episodes with one outcome at their end. Beside it stand both boundary
    policies and mixtures of them, on tasks that nothing was learned from.

    Example: farthing steps --on generated --budget 0.003
    """
    import numpy as np

    from farthing.methods.routers.bopo.learner import SHORT, BopoConfig, learn
    from farthing.studies import step_routing as experiments

    (chain, judged), prices = _chains(on, train, test, seed), price or [0.1, 0.3, 0.6]
    budget_nano = None if budget is None else int(budget * NANO_PER_USD)
    if budget_nano is not None:
        experiments.refuse(judged, budget_nano)
    found: dict[str, Learned] = {}
    wanted = experiments.configs(prices, SHORT if on == "embedded" else BopoConfig())
    with interruptible("nothing was written"), trainings() as shown:
        for name, config in wanted.items():
            found[name] = learn(chain, config, np.random.default_rng(seed), Learning(shown, name))
    policies = {name: one.policy.surely for name, one in found.items()}
    rows = experiments.compare(judged, policies, budget_nano, np.random.default_rng(seed + 1))
    best = _optimum(on, prices, budget_nano)
    shares = experiments.classes(next(iter(found.values())).boundaries)
    if as_json:
        show_json({"classes": shares, "rows": [_record(row) for row in rows], "optimum": best})
        return
    remark(f"learned from {counted(train, 'task')}, judged on {test:,} others")
    limit = "without a budget" if budget_nano is None else f"at most {dollars(budget_nano)} each"
    show(Text(f"{TASKS[on]}: {counted(test, 'task')}, {limit}\n", style="bold"))
    show(_table(rows))
    told = ", ".join(f"{share:.0%} {name}" for name, share in shares.items())
    show(Text(f"Tasks, by what the boundaries come to on them: {told}."))
    for name, value in best.items():
        show(Text(f"At best, {name}: {value['success']:.3f} for ${value['cost_usd']:.6f}."))


def _chains(on: str, train: int, test: int, seed: int) -> "tuple[Chain, Chain]":
    """Return tasks to learn from and others to judge on."""
    import numpy as np

    from farthing.errors import UnknownNameError

    rng = np.random.default_rng(seed)
    if on == "generated":
        from farthing.methods.routers.bopo.episodes import Generated
        from farthing.process.generator.steps import two_models

        return Generated.draw(two_models(), train, rng), Generated.draw(two_models(), test, rng)
    if on != "embedded":
        raise UnknownNameError("chain of steps", on, TASKS)
    from farthing.models.embedded import EmbeddedSettings
    from farthing.models.prices import PriceTable
    from farthing.studies.step_routing_arithmetic import Arithmetic, draw

    small, large = (
        EmbeddedSettings(model=name, batch=256).open(PriceTable()) for name in ("small", "large")
    )
    return Arithmetic(draw(train, rng), (small, large)), Arithmetic(draw(test, rng), (small, large))


def _optimum(on: str, prices: list[float], budget_nano: int | None) -> dict[str, dict[str, float]]:
    """Return what the best policy comes to for each lambda, where that is known."""
    if on != "generated":
        return {}
    from farthing.process.generator.steps import evaluate, optimum, two_models

    config, found = two_models(), {}
    for price in prices:

        def worth(large: int, price: float = price) -> float:
            return 1.0 - price * large / config.steps

        done = evaluate(config, optimum(config, worth, budget_nano).chances, worth)
        found[f"lambda {price:g}"] = {"success": done.success, "cost_usd": done.cost_nano / 1e9}
    return found


def _record(row: "Row") -> dict[str, float | str]:
    return {
        "policy": row.name,
        "success": row.rate,
        "cost_usd": row.cost_usd,
        "most_usd": int(row.cost_nano.max()) / 1e9,
        "large": float(row.large.mean()),
        "over_budget": row.over,
    }


def _table(rows: "list[Row]") -> Table:
    table = plain_table()
    table.add_column("Who does the steps")
    for title in ("USD a task", "at most", "succeeded", "large", "over"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        error = (row.rate * (1 - row.rate) / len(row.success)) ** 0.5
        table.add_row(
            row.name,
            f"{row.cost_usd:.3g}",
            f"{int(row.cost_nano.max()) / 1e9:.3g}",
            f"{row.rate:.3f} ± {error:.3f}",
            f"{row.large.mean():.0%}",
            str(row.over),
        )
    return table

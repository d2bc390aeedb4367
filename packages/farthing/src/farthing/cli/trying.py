"""`farthing try`: cheaper models on a sample of a log, and what could be saved with them."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farthing import plugins
from farthing.cli import files, judging
from farthing.cli.collect import displayed, exit_code, in_usd, say_end
from farthing.cli.command import takes_options
from farthing.cli.console import Learning, interruptible, remark, show, show_json, trainings
from farthing.cli.imports import read_price
from farthing.cli.options import (
    MaxCost,
    Seed,
    TracesFiles,
    read_confidence,
    read_epsilon,
)
from farthing.errors import InputError, MissingPackageError
from farthing.money import nano_from_usd
from farthing.reports.table import counted

if TYPE_CHECKING:
    from farthing.budgets.ledger import Balance
    from farthing.models.prices import Price
    from farthing.recommendation.losses import LossTable
    from farthing.recommendation.record import Recommendation
    from farthing.runtime.replay import Again
    from farthing.runtime.tried import Tried
    from farthing.runtime.trying import Trying


@dataclass(frozen=True)
class Asked:
    """Which models are asked how many of the requests."""

    models: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="PROVIDER/MODEL or URL#MODEL, such as http://localhost:8000/v1#llama.",
        ),
    ]
    sample: Annotated[int, typer.Option(min=1, metavar="N", help="Requests to draw at random.")] = (
        1_500
    )
    reference: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model you pay for today, as PROVIDER/MODEL."),
    ] = None
    task: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="How answers are compared; by default inferred."),
    ] = None
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For prose: a model that says which answers mean the same as the logged one.",
        ),
    ] = None
    price: Annotated[
        list[str],
        typer.Option(metavar="MODEL=IN,OUT", help="USD per million tokens, if no price is known."),
    ] = ()  # type: ignore[assignment]  # a tuple, as defaults of dataclasses must not change

    @property
    def prices(self) -> "Mapping[str, Price]":
        """The prices that were given, by model."""
        return dict(map(read_price, self.price))


@dataclass(frozen=True)
class Kept:
    """What is promised of what is recommended, and where it goes."""

    max_loss: Annotated[
        Fraction | None,
        typer.Option(
            "--max-loss",
            "--epsilon",
            parser=read_epsilon,
            metavar="DECIMAL",
            help="Share of answers that may differ, by default 0.05.",
        ),
    ] = None
    confidence: Annotated[
        Fraction | None,
        typer.Option(parser=read_confidence, metavar="DECIMAL", help="Confidence. Default 0.9."),
    ] = None
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Store to keep replies in.", show_default="LOG.try.db"),
    ] = None
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The bundle.", show_default="LOG-bundle-1"),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML report here, such as report.html."),
    ] = None


@takes_options
def try_models(
    traces: TracesFiles,
    asked: Asked,
    *,
    max_cost: MaxCost,
    kept: Kept,
    seed: Seed = 0,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Ask cheaper models a sample of a log's requests, and say what could be saved with them.

    Each request is sent as it was logged; the logged answer is what the others are compared with.
    Run it again to go on, or with more models or requests to add them: nothing is paid twice. Exit
    code 1: nothing cheaper is proved, or calls are left.

    Example: farthing try log.jsonl --models openai/gpt-4.1-nano --max-cost 5
    """
    from farthing.runtime import collect as collection
    from farthing.runtime.tried import Tried, recall, remember
    from farthing.runtime.trying import Wanted, prepare
    from farthing.traces.files import read_log
    from farthing.traces.store import Store

    prices = asked.prices
    names = tuple(name.strip() for name in asked.models.split(",") if name.strip())
    if not names:
        raise InputError("--models names no model; give one, such as openai/gpt-4.1-nano")
    wanted = Wanted(names, asked.sample, seed, asked.reference, asked.task, asked.judge)
    log = read_log(traces, prices)
    trying = prepare(log, files.named(traces), wanted, prices)
    stem = traces[0].name.partition(".")[0]
    path = kept.store or Path(f"{stem}.try.db")
    files.check_file(path)
    if kept.out is not None:
        files.check_bundle(kept.out)
    if kept.report is not None:
        files.check_file(kept.report)
    judging.judged_before(path, trying.judged)
    cap_nano = nano_from_usd(max_cost)
    say = remark if as_json else typer.echo
    _say_plan(trying, path, cap_nano)
    _agree(trying, yes=yes)
    with interruptible("every reply so far is kept, run it again to go on"):
        with Store.open(path) as store:
            judge = None if trying.judged is None else trying.judged.name
            remember(store, Tried.of(trying.replay, _given(prices), judge))
        with displayed() as display:
            report = collection.collect_locally(trying.replay, path, cap_nano, display.show)
        say_end(report, path, say)
        if report.progress.left:
            raise typer.Exit(exit_code(report))
        again = _say_again(trying, path, cap_nano, say) if trying.asks_again else None
        if trying.judged is not None:
            judging.judge(trying.judged, again, path, cap_nano)
    with Store.read(path) as store:
        tried = recall(store)
    if tried is None:
        raise InputError(f"{path}: is the store of no try")
    levels = {"epsilon": kept.max_loss, "delta": kept.confidence and 1 - kept.confidence}
    out = kept.out or Path(f"{stem}-bundle")
    prove(
        path,
        tried,
        levels,
        out,
        seed,
        numbered=kept.out is None,
        report=kept.report,
        as_json=as_json,
    )


def prove(
    path: Path,
    tried: "Tried",
    levels: Mapping[str, Fraction | None],
    out: Path | None,
    seed: int,
    *,
    numbered: bool = False,
    report: Path | None = None,
    details: bool = False,
    as_json: bool = False,
) -> None:
    """Say what is saved at each loss with what a try bought, and write the bundle.

    Args:
        path: the store.
        tried: what it remembers.
        levels: `epsilon` and `delta`, where they are given.
        out: where the bundle goes; None: nowhere.
        seed: of the division and of every training.
        numbered: whether the bundle's name ends in the number of the proof.
        report: where the page goes; None: nowhere.
        details: whether to print what was tried as well.
        as_json: whether to print JSON.
    """
    from farthing.methods.base import Dataset
    from farthing.promises.kinds.agreement import Agreement
    from farthing.promises.kinds.parity import Parity
    from farthing.promises.levels import exact_level
    from farthing.recommendation.losses import at_losses
    from farthing.recommendation.plan import default
    from farthing.reports import losses as shown_losses
    from farthing.reports.recommend import screen
    from farthing.runtime.provenance import made_with
    from farthing.runtime.tried import look, said_right, share_of_look
    from farthing.runtime.trying import LOSSES
    from farthing.traces.store import Store

    arrays = files.read_traces(path)
    usual = default(arrays)
    graded = tried.judge is not None or isinstance(usual, Parity)
    kind: Any = Parity if graded else Agreement
    given = {name: level for name, level in levels.items() if level is not None}
    if tried.judge is not None:
        given = {"epsilon": judging.loss(), **given}
    promise = kind(reference=tried.reference, **given)
    conditions = said_right([path], promise)
    said = [promise.kind, str(promise.epsilon), str(promise.delta), tried.reference, seed]
    with Store.open(path) as store:
        k = look(store, arrays, said)
    system = made_with([path], arrays, None).system
    dataset = Dataset(path.name, arrays, system=system, conditions=conditions)
    with interruptible("nothing was saved"), trainings() as shown:
        table = at_losses(
            dataset,
            promise,
            LOSSES,
            look=(k, share_of_look(k), share_of_look(k + 1)),
            seed=seed,
            progress=Learning(shown, "trying methods"),
        )
    best = table.at(exact_level(promise.epsilon))
    if tried.judge is not None:
        remark(judging.meaning(tried))
    folder = out.with_name(f"{out.name}-{k}") if out is not None and numbered else out
    following = "Next: give --out FOLDER to keep the bundle."
    if folder is not None:
        following = _write(best.found, tried, folder)
    write_page(best.found, path.name, report, table)
    if as_json:
        show_json({**table.to_json(), "recommended": best.found.to_json()})
        remark(following)
    else:
        show(shown_losses.screen(table, path.name))
        told = {"counted": True, "details": details}
        show(screen(best.found, path.name, None, None, following, **told))
    if best.found.nothing_cheaper:
        raise typer.Exit(1)


def write_page(
    found: "Recommendation", source: str, path: Path | None, losses: "LossTable | None" = None
) -> None:
    """Write a recommendation as a page, where one is wanted."""
    if path is None:
        return
    from farthing.reports import recommendation_page

    recommendation_page.write(found, source, path, losses)
    remark(f"report: {path}")


def _write(found: Any, tried: "Tried", folder: Path) -> str:
    """Write a bundle and the configuration beside it that serves it; return what to do next."""
    from farthing.bundle import folder as bundles

    bundles.write(folder, found.bundle)
    remark(f"bundle: {folder}")
    if not plugins.names("servers"):
        missing = MissingPackageError(f"farthing serve {folder}", plugins.GATEWAY)
        return f"Next: {missing}; then run this again, which pays for nothing twice."
    if problem := plugins.load("servers", "write-config")(tried, found.bundle, folder):
        return f"Next: a gateway cannot serve {folder} as it was proved: {problem}."
    return f"Next: farthing serve {folder}"


def _say_plan(trying: "Trying", path: Path, cap_nano: int) -> None:
    from farthing.models.providers import hosts
    from farthing.runtime.collect import price
    from farthing.runtime.second_answers import price_again, recall_again
    from farthing.runtime.tried import Tried

    replay = trying.replay
    for note in trying.notes:
        remark(f"note: {note}")
    n, names = len(replay.sample), " and ".join(replay.names)
    remark(f"{n:,} of {len(replay.log.requests):,} logged requests, drawn alike, go to {names}")
    remark(f"compared with the logged answers of {replay.role}; {trying.sameness.said}")
    unlike = plugins.load("servers", "unlike") if plugins.names("servers") else None
    if unlike is not None and (problem := unlike(Tried.of(replay, {}))):
        remark(f"note: a gateway could not serve what is proved of this sample: {problem}")
    job, balance = price(replay, path, cap_nano)
    most, likely = job.largest_nano, job.likely_nano or 0
    if trying.asks_again:
        again = price_again(replay.again(judging.AGAIN), path, cap_nano)
        few = counted(len(replay.again(judging.AGAIN).sample), "request")
        remark(f"{replay.role} is asked again on {few}, to see how often it agrees with itself")
        most, likely = most + again.largest_nano, likely + (again.likely_nano or 0)
    if trying.judged is not None:
        seconds = replay.again(judging.AGAIN) if trying.asks_again else None
        if seconds is not None:
            recall_again(seconds, path)
        judge_likely, judge_most = trying.judged.price_nano(
            seconds, judging.elsewhere(replay), path
        )
        remark(f"{trying.judged.name} compares each answer with the logged one")
        most, likely = most + judge_most, likely + judge_likely
    remark(
        f"price    likely {in_usd(likely)}, at most {in_usd(min(most, balance.left_nano))}; "
        f"allowed {in_usd(balance.left_nano)} of {in_usd(balance.cap_nano)}"
    )
    remark(
        f"likely   replies as long as the logged ones; at most: as long as they may be ("
        f"{replay.limit:,} tokens where the log sets no limit)"
    )
    readers = [replay.models] if trying.judged is None else [replay.models, trying.judged.config]
    named = dict.fromkeys(host for each in readers for host in hosts(each))
    remark(f"logged texts go to {', '.join(named)}")


def _agree(trying: "Trying", *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError("nobody is here to ask; give --yes to send the requests and pay for them")
    if not typer.confirm(f"Ask {' and '.join(trying.replay.names)}?"):
        raise typer.Exit(1)


def _say_again(trying: "Trying", path: Path, cap_nano: int, say: Callable[[str], None]) -> "Again":
    """Ask the reference again on a few; where no judge does it, say how often it agrees."""
    from farthing.promises.statistics.binomial import binomial_interval
    from farthing.runtime.second_answers import ask_again

    again = trying.replay.again(judging.AGAIN)
    balance: Balance = ask_again(again, path, cap_nano)
    same, n = again.agreed
    if not n:
        remark(f"{trying.replay.role} could not be asked again; how steady it is stays unknown")
    if not n or trying.judged is not None:
        return again
    low, high = binomial_interval(same, n, 0.05)
    say(
        f"{trying.replay.role} agrees with itself on {same} of {n} that it was asked again "
        f"({same / n:.1%}, 95 % interval {low:.1%} to {high:.1%}); "
        f"{in_usd(balance.settled_nano)} spent in all"
    )
    return again


def _given(prices: "Mapping[str, Price]") -> dict[str, dict[str, float]]:
    from farthing.models.prices import TokenPrice

    return {
        name: {
            f"{what}_per_million": float(usd)
            for what in ("input", "output", "cached_input", "cache_write", "cache_write_hour")
            if (usd := getattr(price.rates[0], what)) is not None
        }
        for name, price in prices.items()
        if isinstance(price, TokenPrice)
    }

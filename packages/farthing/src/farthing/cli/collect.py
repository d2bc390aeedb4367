"""`farthing collect`: ask live models, and store what they say."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from farthing import plugins
from farthing.cli.console import interruptible, remark
from farthing.cli.options import MaxCost
from farthing.errors import BadRequestError, InputError
from farthing.money import nano_from_usd, usd_from_nano
from farthing.reports.table import counted

if TYPE_CHECKING:
    from farthing.budgets.ledger import Balance
    from farthing.runtime import collect as collection
    from farthing.runtime import dry_run as estimate
    from farthing.runtime.job import Job
    from farthing.runtime.journal import FailedTries

LISTED = 10
"""Failed questions and calls of unknown outcome that are named."""
UNREAD = 10
"""Replies of a role that cannot be read, after which a collection warns."""
QUOTED = 50
"""Characters that are shown of the beginning and of the end of such a reply."""


def collect(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The job, a TOML file.")],
    store: Annotated[Path, typer.Option(metavar="FILE", help="Store to write to, such as a.db.")],
    max_cost: MaxCost,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the largest cost and ask no model.")
    ] = False,
    efforts: Annotated[
        list[str],
        typer.Option(
            metavar="[MODEL=]EFFORT,...",
            help="Ask the pool, or MODEL alone, at each effort: low,high, or tokens: 1024,4096.",
        ),
    ] = (),  # type: ignore[assignment]  # a tuple, as defaults must not change
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Run in this process, or on a Ray cluster.")
    ] = "local",
    workers: Annotated[int, typer.Option(min=1, help="Number of Ray workers.")] = 2,
) -> None:
    """Ask every question of a job and store the traces; run it again to go on.

    Replies are logged as they come: nothing that was answered is ever paid for again. Exit code 1:
    questions are left, since calls failed or the cap was reached.

    Example: farthing collect job.toml --store traces.db --max-cost 5.00
    """
    from farthing.runtime import collect as collection
    from farthing.runtime import job as jobs
    from farthing.runtime.trying import replay_of

    read = jobs.read_job(config)
    read = read.at_efforts(efforts) if efforts else read
    job: collection.Collectable = read
    if read.section.mode == "replay":
        if engine == "ray":
            raise InputError("a replay runs in this process; leave --engine ray out")
        job = replay_of(read)
    else:
        _doubt_store(read, store)
    cap_nano = nano_from_usd(max_cost)
    if dry_run:
        _say_price(*collection.price(job, store, cap_nano))
        return
    kept = "every reply so far is in the store, run it again to go on"
    with interruptible(kept), displayed() as display:
        if engine == "ray":
            on_ray = plugins.load("engines", engine)
            report = on_ray(read, store, cap_nano, display.show, workers=workers)
        else:
            report = collection.collect_locally(job, store, cap_nano, display.show)
    say_end(report, store)
    if report.progress.left:
        raise typer.Exit(exit_code(report))


def _doubt_store(job: "Job", path: Path) -> None:
    """Say, before anything is paid, that the store has traces of another system."""
    from farthing.traces.store import Store
    from farthing.traces.system import changes

    if not path.is_file():
        return
    with Store.read(path) as store:
        recorded = [system for system in store.systems() if system is not None]
    ours = job.system() if recorded else {}
    for found in filter(None, (changes(system, ours) for system in recorded)):
        remark(
            f"note: {path} has traces that were made otherwise; changed: {', '.join(found)}; a "
            "bundle from all of them cannot notice such changes: rather collect into a new store"
        )


def _say_price(price: "estimate.JobEstimate", balance: "Balance") -> None:
    likely = "unknown, as the journal has no such calls yet"
    if price.likely_nano is not None:
        likely = in_usd(price.likely_nano)
    left, calls = counted(price.questions, "question"), counted(price.calls, "call")
    typer.echo(f"{left} left, at most {calls} to models")
    typer.echo(f"at most  {in_usd(price.largest_nano)} without retries")
    typer.echo(f"likely   {likely}")
    typer.echo(f"allowed  {in_usd(balance.left_nano)} of {in_usd(balance.cap_nano)}")
    for warning in price.warnings:
        remark(f"note: {warning}")


def say_end(
    report: "collection.Report", store: Path, say: Callable[[str], None] = typer.echo
) -> None:
    """Say how a collection ended: what is recorded, what failed, and what that cost.

    `say` prints what is recorded; all else is beside the results.
    """
    progress, balance = report.progress, report.balance
    say(
        f"{counted(progress.done, 'question')} recorded into {store}, "
        f"{report.earlier:,} {'was' if report.earlier == 1 else 'were'} there; "
        f"{in_usd(balance.settled_nano)} of {in_usd(balance.cap_nano)} spent"
    )
    if report.unknown:
        charged = in_usd(sum(one.reserved_nano for one in report.unknown))
        calls = counted(len(report.unknown), "call")
        remark(f"{calls} of unknown outcome, charged in full ({charged}):")
        _list([f"{c.question}, round {c.round}, {c.role}: {c.asked}" for c in report.unknown])
    if progress.failed:
        failed = counted(len(progress.failed), "question")
        remark(f"{failed} failed; the next run asks again:")
        _list(_alike(progress.failed))
    for (role, kind), n in progress.unanswered.items():
        remark(f"{role} gave no answer to {counted(n, 'question')}, recorded as such: {kind}")
    if report.failures:
        tries = sum(one.tries for one in report.failures)
        cost_nano = sum(one.cost_nano for one in report.failures)
        said = f"failed tries: {tries:,}, which count as {in_usd(cost_nano)}"
        remark(f"{said} (those of unknown outcome as the most that they can cost):")
        said = " ".join(progress.failed.values())
        _list([_failed(one, said) for one in report.failures])
    if balance.overcharged_nano:
        remark(f"a provider charged {in_usd(balance.overcharged_nano)} more than its price allows")
    if progress.stopped:
        remark(f"stopped: {progress.stopped}")
    if progress.left:
        left = counted(progress.left, "question")
        remark(f"{left} left to do: run the same command again")


def exit_code(report: "collection.Report") -> int:
    """Return how a command ends whose collection left questions: 2 where no request was right."""
    from farthing.runtime import collect as collection

    progress = report.progress
    if progress.stopped == collection.INTERRUPTED:
        return 130
    kinds = {one.kind for one in report.failures}
    return 2 if not progress.done and kinds == {BadRequestError.kind} else 1


def _alike(failed: Mapping[str, str]) -> list[str]:
    found: dict[str, list[str]] = {}
    for question, failure in failed.items():
        found.setdefault(failure, []).append(question)
    return [
        f"{some[0]}{f' and {len(some) - 1:,} more' if some[1:] else ''}: {failure}"
        for failure, some in found.items()
    ]


def _failed(one: "FailedTries", said: str) -> str:
    """Say how many tries of a role failed in one way, what they count as, and what is not said."""
    count = f"{one.role}: {one.tries:,} x {one.kind}, {in_usd(one.cost_nano)}"
    return count if one.example in said else f"{count}: {one.example[:160]}"


def _list(lines: list[str]) -> None:
    for line in lines[:LISTED]:
        remark(f"  {line}")
    if len(lines) > LISTED:
        remark(f"  and {len(lines) - LISTED:,} more")


def in_usd(nano: int) -> str:
    """Return nano-dollars as people read them."""
    return f"${usd_from_nano(nano):,.4f}"


def _unreadable(role: str, progress: "collection.CollectionProgress") -> str:
    """Say how many replies of a role say nothing that can be read, and what may be the reason."""
    text = " ".join(progress.examples[role].split())
    if len(text) > 2 * QUOTED:
        text = f"{text[:QUOTED]} ... {text[-QUOTED:]}"
    share = f"{progress.unread[role]:,} of {role}'s {progress.replies[role]:,} replies so far"
    return (
        f"{share} cannot be read, the first of them {repr(text) if text else 'empty'}: they may be "
        "cut off at max_tokens, or think aloud before they answer"
    )


class _Display:
    """One line on stderr: done, failed, spend, rate and time left."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._bar = bars.add_task("collecting", total=None, failed=0, spent="", rate="")
        self._began = time.monotonic()
        self._warned: set[str] = set()

    def show(self, progress: "collection.CollectionProgress", balance: "Balance") -> None:
        completed = progress.done + len(progress.failed)
        rate = completed / max(time.monotonic() - self._began, 0.1)
        self._bars.update(
            self._bar,
            total=progress.total,
            completed=completed,
            failed=len(progress.failed),
            spent=f"{in_usd(balance.settled_nano)} of {in_usd(balance.cap_nano)}",
            rate=f"{rate:.1f}/s",
        )
        for role, unread in progress.unread.items():
            if unread >= UNREAD and role not in self._warned:
                self._warned.add(role)
                remark(f"warning: {_unreadable(role, progress)}")


@contextmanager
def displayed() -> Iterator[_Display]:
    """Show where a collection is, on a line of its own, while the block runs."""
    console = Console(file=sys.stderr)
    with Progress(
        TextColumn("{task.completed}/{task.total}"),
        BarColumn(bar_width=16),
        TextColumn("failed {task.fields[failed]}"),
        TextColumn("{task.fields[spent]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(compact=True),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bars:
        yield _Display(bars)

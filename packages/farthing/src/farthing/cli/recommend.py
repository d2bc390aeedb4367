"""`farthing recommend`: what to use instead of the model that is paid for today, and the proof."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from farthing.cli import files, trying
from farthing.cli.console import Learning, interruptible, remark, show, show_json, trainings
from farthing.cli.imports import read_pair
from farthing.cli.options import Missing, Seed, TracesFiles, read_alpha
from farthing.cli.promises import Given, takes_promise, with_defaults
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.runtime.tried import Tried


@dataclass(frozen=True)
class RecommendedPromise:
    """What is kept of what is paid for today."""

    promise: Annotated[
        str | None,
        typer.Option(
            help="What to keep; by default parity with the reference of a pool (agreement "
            "where nobody graded answers), coverage for questions in rounds."
        ),
    ] = None
    alpha: Annotated[
        Fraction | None,
        typer.Option(
            parser=read_alpha,
            metavar="DECIMAL",
            help="Coverage, selective: the share of misses. Default 0.1.",
        ),
    ] = None
    given: Given = field(default_factory=dict)
    alias: Annotated[
        list[str],
        typer.Option(
            "--alias", metavar="OLD=NEW", help="A model's name in the traces, and its new name."
        ),
    ] = field(default_factory=list)
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="The model you pay for today; by default the one with the highest total cost.",
        ),
    ] = None


@takes_promise("recommend", first=("parity", "agreement"))
def recommend(
    traces: TracesFiles,
    wanted: RecommendedPromise,
    *,
    missing: Missing = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="Seconds in which 19 of 20 questions must be answered."
        ),
    ] = None,
    holdout: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Questions that only measure; by default a tenth, at most 500, of 2,000 or more.",
        ),
    ] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to write the bundle to.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML report here, such as report.html."),
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Add methods tried, exact promise and notes.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Say what to use instead of the model that is paid for today, what it saves, and prove it.

    Three methods that cover for one another are trained, and proved side by side on questions that
    trained nothing; the cheapest that is proved is taken. Where few questions prove, all methods
    that can win are tried, and the likeliest is proved. Exit code 1: nothing cheaper than the
    reference is proved, and the bundle asks that one for every question. Of a log with one model's
    answers it says what is paid today, and the command that tries others.

    Example: farthing recommend runs.jsonl.gz --reference gpt-4o --out bundle
    """
    from farthing.bundle import folder as bundles
    from farthing.methods.base import Dataset
    from farthing.recommendation import recommend as rooms
    from farthing.recommendation.plan import default
    from farthing.reports.recommend import UNCOUNTED, screen
    from farthing.runtime.provenance import made_with
    from farthing.runtime.tried import at_next_look, stores_of, usual_promise
    from farthing.traces.importers.read import Supplied
    from farthing.traces.pool import one_model_each

    check_written(out, report)
    pairs = dict(read_pair(pair, "--alias") for pair in wanted.alias)
    arrays, notes = files.noted(traces, Supplied(aliases=pairs))
    if one_model_each(arrays):
        _propose_aliases(notes)
        say_paid_today(traces, wanted.reference, as_json=as_json)
        raise typer.Exit(1)
    if (tried := _of_a_try(traces, wanted, deadline or holdout)) is not None:
        options: Any = {"report": report, "details": details, "as_json": as_json}
        trying.prove(traces[0], tried, wanted.given, out, seed, **options)
        return
    arrays = files.checked(arrays, notes)
    stores, reference = stores_of(traces), wanted.reference
    kind = wanted.promise or (usual_promise(stores) or default(arrays)).kind
    promise = with_defaults(kind, wanted.alpha, wanted.given).beside(reference)
    look = at_next_look(stores, arrays, promise, [reference, deadline, holdout, seed])
    dataset = Dataset(
        files.named(traces),
        arrays,
        system=made_with(traces, arrays, None).system,
        missing=missing,
        conditions=look.conditions,
    )
    with interruptible("nothing was saved"), trainings() as shown:
        found = rooms.recommend(
            dataset,
            look.promise,
            reference=reference,
            deadline_s=deadline,
            holdout=holdout,
            seed=seed,
            progress=Learning(shown, "trying methods"),
        )
    if look.note:
        found = found.noted(look.note)
    if out is not None:
        bundles.write(out, found.bundle)
        remark(f"bundle: {out}")
    trying.write_page(found, files.named(traces), report)
    if as_json:
        show_json(found.to_json())
        if not stores and not found.nothing_cheaper:
            remark(f"note: {UNCOUNTED}")
    else:
        whence = len(arrays) if all(map(_is_traffic, traces)) else None
        kept, known = None if out is None else str(out), bool(stores)
        name = files.named(traces)
        show(screen(found, name, kept, whence, counted=known, details=details))
    if found.nothing_cheaper:
        raise typer.Exit(1)


def _propose_aliases(notes: Sequence[str]) -> None:
    """Say which two names look like one model's."""
    for note in notes:
        if "--alias" in note:
            remark(f"note: {note}")


def check_written(out: Path | None, report: Path | None) -> None:
    """Refuse a bundle or a page that could not be written, before anything is trained."""
    if out is not None:
        files.check_bundle(out)
    if report is not None:
        files.check_file(report)


def say_paid_today(traces: Sequence[Path], reference: str | None, *, as_json: bool) -> None:
    """Say of a log of one model what is paid, and the command that tries cheaper ones."""
    from farthing.reports import paid_today
    from farthing.runtime.trying import next_try
    from farthing.traces.files import read_log

    log = read_log(traces)
    following = next_try(log, traces, reference)
    if as_json:
        show_json(paid_today.to_json(log, following))
    else:
        show(paid_today.screen(log, files.named(traces), following))
        typer.echo(f"\nNext: {following.command}")


def _of_a_try(
    traces: Sequence[Path], wanted: RecommendedPromise, limits: float | None
) -> "Tried | None":
    """Return what a store remembers of the try that made it; None where none did.

    `limits` is a deadline or a number of questions that only measure, which a try has no use for.
    """
    from farthing.runtime.tried import recall
    from farthing.traces.store import STORES, Store

    if len(traces) > 1 or traces[0].suffix not in STORES:
        return None
    with Store.read(traces[0]) as store:
        tried = recall(store)
    if tried is None or wanted.promise not in (None, "parity", "agreement"):
        return None
    if limits is not None:
        raise InputError("--deadline and --holdout are not for the store of a try; leave them out")
    if wanted.reference not in (None, tried.reference):
        raise InputError(
            f"--reference {wanted.reference}: this try holds others to {tried.reference}"
        )
    return tried


def _is_traffic(traces: Path) -> bool:
    """Return whether all questions of a store passed through a gateway."""
    from farthing.traces.store import STORES, TRAFFIC, Store

    if traces.suffix not in STORES:
        return False
    with Store.read(traces) as store:
        return {one.source for one in store.imports()} == {TRAFFIC}

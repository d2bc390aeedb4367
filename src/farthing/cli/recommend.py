"""`farthing recommend`: what to use instead of the model that is paid for today, and the proof."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from farthing.cli import files
from farthing.cli.console import Learning, interruptible, remark, show, show_json, trainings
from farthing.cli.options import (
    Missing,
    Seed,
    TracesFiles,
    check_agreement,
    read_alpha,
    read_delta,
    read_epsilon,
)
from farthing.cli.promises import PerWhat

if TYPE_CHECKING:
    from farthing.recommendation.promises import Agreement, Parity
    from farthing.recommendation.promises import Promise as Asked

Kind = Literal["parity", "agreement", "coverage", "selective"]
Epsilon = Annotated[
    Fraction | None,
    typer.Option(
        parser=read_epsilon,
        metavar="DECIMAL",
        help="Parity: the accuracy that may be lost, by default 0.02. Agreement: the share "
        "answered otherwise, by default 0.05.",
    ),
]
Delta = Annotated[
    Fraction | None,
    typer.Option(parser=read_delta, metavar="DECIMAL", help="How often it may fail. Default 0.1."),
]


def recommend(
    traces: TracesFiles,
    promise: Annotated[
        Kind | None,
        typer.Option(
            help="What to keep; by default parity with the reference of a pool (agreement "
            "where nobody graded answers), coverage for questions in rounds."
        ),
    ] = None,
    alpha: Annotated[
        Fraction | None,
        typer.Option(
            parser=read_alpha,
            metavar="DECIMAL",
            help="Coverage, selective: the share of misses. Default 0.1.",
        ),
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE",
            help="The model that is paid for today; else a guess: the one that most was paid for.",
        ),
    ] = None,
    missing: Missing = None,
    per: PerWhat = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="What 19 of 20 questions may take; else any time."
        ),
    ] = None,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where the bundle goes.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Say what to use instead of the model that is paid for today, what it saves, and prove it.

    Every method that can win is trained; the cheapest is chosen, proved and measured, each on
    questions of their own. Exit code 1: nothing cheaper than the reference is proved, and the
    bundle asks that one for every question.

    Example: farthing recommend --traces runs.jsonl.gz --reference gpt-4o --out bundle
    """
    from farthing.bundle import folder as bundles
    from farthing.methods.base import Dataset
    from farthing.recommendation import recommend as rooms
    from farthing.recommendation.plan import default
    from farthing.recommendation.promises import with_per
    from farthing.reports.recommend import OfTraffic, screen
    from farthing.runtime.provenance import made_with

    if out is not None:
        files.check_bundle(out)
    arrays = files.read_traces(*traces)
    kind = promise or type(default(arrays)).__name__.lower()
    asked = with_per(_asked(kind, alpha, epsilon, delta, reference), per or "question")
    system = made_with(traces, arrays, None).system
    dataset = Dataset(files.named(traces), arrays, system=system, missing=missing)
    with interruptible("nothing was saved"), trainings() as shown:
        found = rooms.recommend(
            dataset,
            asked,
            reference=reference,
            deadline_s=deadline,
            seed=seed,
            progress=Learning(shown, "trying methods"),
        )
    if out is not None:
        bundles.write(out, found.bundle)
        remark(f"bundle: {out}")
    if as_json:
        show_json(found.to_json())
    else:
        whence = OfTraffic(len(arrays)) if all(map(_is_traffic, traces)) else None
        show(screen(found, files.named(traces), None if out is None else str(out), whence))
    if found.nothing_cheaper:
        raise typer.Exit(1)


def _is_traffic(traces: Path) -> bool:
    """Return whether all questions of a store passed through a gateway."""
    from farthing.gateway.recording.export import SOURCE
    from farthing.traces.files import STORES
    from farthing.traces.store import Store

    if traces.suffix not in STORES:
        return False
    with Store.read(traces) as store:
        return {one.source for one in store.info().imports} == {SOURCE}


def _asked(
    kind: str,
    alpha: Fraction | None,
    epsilon: Fraction | None,
    delta: Fraction | None,
    reference: str | None,
) -> "Asked":
    """Return what is asked for.

    Raises:
        InputError: an option means nothing to it.
    """
    from farthing.errors import InputError
    from farthing.recommendation import promises

    level = 1 - (Fraction(1, 10) if alpha is None else alpha)
    sure = Fraction(1, 10) if delta is None else delta
    if kind in ("coverage", "selective") and epsilon is not None:
        raise InputError(f"--epsilon means nothing to a promise of {kind}; give --alpha")
    if kind in ("parity", "agreement") and alpha is not None:
        raise InputError(f"--alpha means nothing to a promise of {kind}; give --epsilon")
    if kind == "coverage":
        return promises.Coverage(level, delta)
    if kind == "selective":
        return promises.Selective(level, sure)
    return held_to(reference, kind, epsilon, delta)


def held_to(
    reference: str | None, kind: str, epsilon: Fraction | None, delta: Fraction | None
) -> "Parity | Agreement":
    """Return the promise that holds answers to a reference's; levels that are None by default.

    Raises:
        InputError: agreement cannot have that epsilon.
    """
    from farthing.recommendation.promises import Agreement, Parity

    sure = Fraction(1, 10) if delta is None else delta
    if kind == "parity":
        return Parity(reference, Fraction(1, 50) if epsilon is None else epsilon, sure)
    check_agreement(epsilon)
    return Agreement(reference, Fraction(1, 20) if epsilon is None else epsilon, sure)

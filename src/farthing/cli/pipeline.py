"""`farthing train`, `calibrate` and `evaluate`: one policy, each step on its own questions."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from farthing.cli import completion, files
from farthing.cli.console import (
    Learning,
    interrupted,
    interruptible,
    remark,
    show,
    show_json,
    trainings,
)
from farthing.cli.options import (
    Alpha,
    Bundle,
    CalibrateSize,
    Features,
    Grade,
    GradesFile,
    Job,
    Json,
    Missing,
    Population,
    Seed,
    TestSize,
    TracesFiles,
    TrainSize,
    sizes_of,
)
from farthing.cli.promises import (
    Given,
    Largest,
    QuestionBudget,
    asked_for,
    per_question,
    takes_promise,
)
from farthing.promises.kinds.coverage import Method
from farthing.traces.arrays import RIGHT

if TYPE_CHECKING:
    from farthing.methods.base import Fitted
    from farthing.recommendation.pipeline import Calibrated

Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where the bundle goes.")]


def train(
    traces: TracesFiles,
    out: Out,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Such as ccpo or stopping; `auto`: the cheapest of those that can win.",
            autocompletion=completion.methods,
        ),
    ] = "auto",
    alpha: Alpha = Fraction(1, 10),
    feature: Features = [],  # noqa: B006 - typer copies it
    grade: Grade = RIGHT,
    job: Job = None,
    seed: Seed = 0,
    train: TrainSize = None,
    calibrate: CalibrateSize = None,
    test: TestSize = None,
) -> None:
    """Train one policy and save it as a bundle, with its training curves beside it.

    Without --policy the training questions choose the method, as `farthing recommend` does.
    Ctrl-C ends the training; what it has reached is saved.

    Example: farthing train --traces runs.jsonl.gz --policy ccpo --alpha 0.1 --out bundle
    """
    from farthing.methods.base import Dataset
    from farthing.recommendation import auto, bundle_splits, pipeline
    from farthing.runtime.provenance import made_with
    from farthing.traces.grades.named import graded

    files.check_bundle(out)
    arrays = graded(files.read_traces(*traces), grade)
    dataset = Dataset(files.named(traces), arrays, features=tuple(feature))
    made = made_with(traces, dataset.traces, job)
    files.doubt_costs(dataset.traces)
    split = bundle_splits.Split(seed, sizes_of(train, calibrate, test))
    with interruptible("nothing was saved"), trainings() as shown:
        if policy == auto.AUTO:
            policy = auto.in_training(dataset, alpha, split, Learning(shown, "trying methods"))
            remark(f"policy: {policy}, which is likely to keep its promise for the least money")
        trained = pipeline.train(
            replace(dataset, system=made.system),
            policy,
            alpha,
            out,
            split=split,
            progress=Learning(shown, policy),
        )
    curves = _write_curves(out, trained.fitted)
    _say_sizes(trained.sizes)
    _doubt(trained.notes)
    remark(f"bundle: {out}; it promises nothing until it is calibrated")
    if curves:
        remark(f"curves: {curves}")
    if trained.fitted.stopped_early:
        raise interrupted("the bundle holds what training had reached")


@takes_promise("calibrate")
def calibrate(
    bundle: Bundle,
    traces: TracesFiles,
    alpha: Alpha = Fraction(1, 10),
    method: Annotated[
        Method,
        typer.Option(help="On average over draws; with confidence; in each group; along a stream."),
    ] = "split",
    promise: Annotated[
        str,
        typer.Option(help="A right answer in the set; or another promise, with its own options."),
    ] = "coverage",
    given: Given = {},  # noqa: B006 - stands for the options
    grades: GradesFile = None,
    question_budget: QuestionBudget = None,
    largest: Largest = [],  # noqa: B006 - typer copies it
    population: Population = "all",
    missing: Missing = None,
    job: Job = None,
    seed: Seed = 0,
    train: TrainSize = None,
    calibrate: CalibrateSize = None,
    test: TestSize = None,
    as_json: Json = False,
) -> None:
    """Set a bundle's threshold on held-out questions, and print what that promises.

    Give the seed and sizes of its training: then no question is used twice. With a
    --question-budget the policy sees what is left of it, and the promise holds under it alone.
    Exit code 1: nothing could be proved. With parity or agreement the bundle then asks the
    reference for every question, where that was recorded alone; else it is left as it was.

    | promise | options |
    | --- | --- |
    | coverage | --alpha, --method, --delta, --population |
    | selective | --alpha, --delta; with --escalate also --epsilon |
    | parity | --epsilon, --delta, --reference, --per |
    | agreement | --epsilon, --delta, --reference, --per, --judge-epsilon, --judge-delta |
    | budget | --budget, --most, --delta |
    | shift | --alpha, --target |

    Example: farthing calibrate --bundle bundle --traces runs.jsonl.gz --promise parity
    --epsilon 0.05 --delta 0.1
    """
    from farthing.bundle import folder as bundles
    from farthing.recommendation import bundle_splits, certify, pipeline
    from farthing.reports import records
    from farthing.reports.pipeline import promised
    from farthing.runtime.provenance import made_with

    asked = asked_for(promise, alpha, {**given, "method": method, "population": population})
    before = bundles.load(bundle).certificate
    late = None if grades is None else files.graded(files.the_only(traces, "--grades"), grades)
    arrays = files.read_traces(*traces) if late is None else late.traces
    split = bundle_splits.Split(seed, sizes_of(train, calibrate, test))
    made = made_with(traces, arrays, job)
    budget_a_question = per_question(question_budget, largest)
    serving = certify.Serving(budget_a_question, made.system, missing=missing)
    done = pipeline.calibrate(bundle, arrays, asked, split=split, serving=serving, late=late)
    _say_sizes(done.sizes)
    doubts = (*filter(None, [made.note, done.certificate.promise.too_short(done.certificate)]),)
    _doubt((*done.notes, *doubts))
    if as_json:
        show_json(records.calibrated(done, doubts))
    else:
        show(promised(done.certificate, done.value))
        if done.outlook:
            show(Text(f"\n{done.outlook}"))
    if not asked.stands and not done.certificate.promises:
        remark(_unproved(done, bundle))
        raise typer.Exit(1)
    if before is not None and before.promises:
        remark(f"replaced: {before.sentence()}")


def evaluate(
    bundle: Bundle,
    traces: TracesFiles,
    missing: Missing = None,
    seed: Seed = 0,
    train: TrainSize = None,
    calibrate: CalibrateSize = None,
    test: TestSize = None,
    as_json: Json = False,
) -> None:
    """Measure a bundle on questions that neither trained nor calibrated it.

    Give the seed and sizes of its training: then no question is used twice. A Parquet file may be
    larger than memory: it is read in pieces, with the same figures.

    Example: farthing evaluate --bundle bundle --traces runs.jsonl.gz
    """
    from farthing.recommendation import bundle_splits
    from farthing.recommendation import evaluate as evaluation
    from farthing.reports import records
    from farthing.reports.pipeline import measured
    from farthing.traces.files import PARQUET
    from farthing.traces.importers.any_file import form_of

    split = bundle_splits.Split(seed, sizes_of(train, calibrate, test))
    if len(traces) == 1 and traces[0].suffix == PARQUET and form_of(traces[0]) is None:
        with trainings() as shown:
            found = evaluation.evaluate_file(
                bundle, traces[0], split=split, progress=Learning(shown, "evaluate")
            )
    else:
        recorded = files.read_traces(*traces)
        found = evaluation.evaluate(bundle, recorded, split=split, missing=missing)
    _say_sizes(found.sizes)
    _doubt(found.notes)
    if as_json:
        show_json(records.evaluated(found))
    else:
        show(measured(found))


def _unproved(done: "Calibrated", bundle: Path) -> str:
    """Say what became of a bundle for which nothing was proved."""
    if done.left:
        return f"the bundle is left as it was: {done.left}"
    promise = done.certificate.promise
    return (
        f"{bundle} now asks {getattr(promise, 'reference', '')} for every question; the trained "
        "policy is kept inside it, and the next calibration begins with that"
    )


def _write_curves(bundle: Path, fitted: "Fitted") -> Path | None:
    """Write one line an update beside the bundle, whose folder holds nothing but itself."""
    if not fitted.curves:
        return None
    path = bundle.with_name(f"{bundle.name}.curves.csv")
    lines = [",".join(("update", *fitted.curves))]
    rows = zip(*(values.tolist() for values in fitted.curves.values()), strict=True)
    lines += [",".join(map(repr, (update, *row))) for update, row in enumerate(rows, start=1)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _say_sizes(sizes: Mapping[str, int]) -> None:
    known = (f"{size:,} to {part}" for part, size in sizes.items() if size)
    remark(f"questions: {', '.join(known)}")


def _doubt(notes: tuple[str, ...]) -> None:
    for note in notes:
        remark(f"note: {note}")

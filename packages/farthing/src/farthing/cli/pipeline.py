"""`farthing train`, `calibrate`, `evaluate`, `check`: one policy, and what becomes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from farthing.cli import completion, files
from farthing.cli.command import takes_options
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
    BundleTraces,
    Features,
    Grade,
    GradesFile,
    Job,
    Json,
    Missing,
    Population,
    SplitOptions,
    TracesFiles,
)
from farthing.cli.promises import Given, QuestionBudgetOptions, asked_for, takes_promise
from farthing.promises.kinds.coverage import Method
from farthing.traces.arrays import RIGHT

if TYPE_CHECKING:
    from farthing.methods.base import Fitted
    from farthing.promises.base import Promise
    from farthing.recommendation.pipeline import Calibrated


@takes_options
def train(
    traces: TracesFiles,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder to write.")],
    *,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A method, such as ccpo or stopping; `auto`: the likely cheapest.",
            autocompletion=completion.methods,
        ),
    ] = "auto",
    alpha: Alpha = Fraction(1, 10),
    feature: Features = [],  # noqa: B006 - typer copies it
    grade: Grade = RIGHT,
    job: Job = None,
    parts: SplitOptions,
) -> None:
    """Train one policy and save it as a bundle, with its training curves beside it.

    Without --policy the training questions choose the method, as `farthing recommend` does.
    Ctrl-C ends the training; what it has reached is saved.

    Example: farthing train runs.jsonl.gz --policy ccpo --alpha 0.1 --out bundle
    """
    from farthing.methods.base import Dataset
    from farthing.recommendation import auto, pipeline
    from farthing.runtime.provenance import made_with
    from farthing.traces.grades.overlay import graded

    files.check_bundle(out)
    arrays = graded(files.read_traces(*traces), grade)
    dataset = Dataset(files.named(traces), arrays, features=tuple(feature))
    made = made_with(traces, dataset.traces, job)
    files.doubt_costs(dataset.traces)
    with interruptible("nothing was saved"), trainings() as shown:
        if policy == auto.AUTO:
            policy = auto.in_training(
                dataset, alpha, parts.split, Learning(shown, "trying methods")
            )
            remark(f"policy: {policy}, which is likely to keep its promise for the least money")
        trained = pipeline.train(
            replace(dataset, system=made.system),
            policy,
            alpha,
            out,
            split=parts.split,
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


@dataclass(frozen=True)
class CalibratedPromise:
    """What a bundle is to promise, and how that is proved."""

    alpha: Alpha = Fraction(1, 10)
    method: Annotated[
        Method,
        typer.Option(help="Average over draws, with confidence, in each group, or along a stream."),
    ] = "split"
    promise: Annotated[
        str,
        typer.Option(help="A right answer in the set; or another promise, with its own options."),
    ] = "coverage"
    given: Given = field(default_factory=dict)

    def read(self, population: str) -> "Promise":
        """Return the promise, for all questions or for the solvable ones."""
        levels = {**self.given, "method": self.method, "population": population}
        return asked_for(self.promise, self.alpha, levels)


@takes_promise("calibrate")
def calibrate(
    recorded: BundleTraces,
    wanted: CalibratedPromise,
    *,
    grades: GradesFile = None,
    budget: QuestionBudgetOptions,
    population: Population = "all",
    missing: Missing = None,
    job: Job = None,
    parts: SplitOptions,
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

    Example: farthing calibrate runs.jsonl.gz --bundle bundle --promise parity
    --epsilon 0.05 --delta 0.1
    """
    from farthing.bundle import folder as bundles
    from farthing.recommendation import certify, pipeline
    from farthing.reports.bundle import calibrated, promised
    from farthing.runtime.provenance import made_with
    from farthing.runtime.tried import at_next_look, stores_of

    promise, (bundle, traces) = wanted.read(population), (recorded.bundle, recorded.traces)
    before = bundles.load(bundle).certificate
    late = None if grades is None else files.graded(files.the_only(traces, "--grades"), grades)
    arrays = files.read_traces(*traces) if late is None else late.traces
    made = made_with(traces, arrays, job)
    look = at_next_look(stores_of(traces), arrays, promise)
    promise = look.promise
    serving = certify.Serving(
        budget.per_question, made.system, missing=missing, conditions=look.conditions
    )
    done = pipeline.calibrate(
        bundle, arrays, promise, split=parts.split, serving=serving, late=late
    )
    _say_sizes(done.sizes)
    doubts = (
        *filter(None, [made.note, look.note, done.certificate.promise.too_short(done.certificate)]),
    )
    _doubt((*done.notes, *doubts))
    if as_json:
        show_json(calibrated(done, doubts))
    else:
        show(promised(done.certificate, done.value))
        if done.outlook:
            show(Text(f"\n{done.outlook}"))
    if not promise.stands and not done.certificate.promises:
        remark(_unproved(done, bundle))
        raise typer.Exit(1)
    if before is not None and before.promises:
        remark(f"replaced: {before.sentence()}")


@takes_options
def evaluate(
    recorded: BundleTraces,
    *,
    missing: Missing = None,
    parts: SplitOptions,
    as_json: Json = False,
) -> None:
    """Measure a bundle on questions that neither trained nor calibrated it.

    Give the seed and sizes of its training: then no question is used twice.

    Example: farthing evaluate runs.jsonl.gz --bundle bundle
    """
    from farthing.recommendation import evaluate as evaluation
    from farthing.reports.bundle import evaluated, measured

    arrays = files.read_traces(*recorded.traces)
    result = evaluation.evaluate(recorded.bundle, arrays, split=parts.split, missing=missing)
    _say_sizes(result.sizes)
    _doubt(result.notes)
    if as_json:
        show_json(evaluated(result))
    else:
        show(measured(result))


@takes_options
def check(
    recorded: BundleTraces,
    new: Annotated[Path, typer.Option(metavar="FILE", help="New traces; grades are not needed.")],
    parts: SplitOptions,
    as_json: Json = False,
) -> None:
    """Say whether a bundle's certificate still applies to new questions, from their scores.

    Give the traces, seed and sizes that it was calibrated with. Exit code 1: it does not.

    Example: farthing check runs.jsonl.gz --bundle bundle --new new.jsonl.gz
    """
    from farthing.recommendation import drift
    from farthing.reports.bundle import checked

    old, fresh = files.read_traces(*recorded.traces), files.read_traces(new)
    shift = drift.check(recorded.bundle, old, fresh, split=parts.split)
    if as_json:
        show_json(checked(shift))
    else:
        show(Text(shift.sentence()))
    if not shift.applies:
        raise typer.Exit(1)


def _unproved(done: "Calibrated", bundle: Path) -> str:
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

"""What is said of one bundle: for a terminal, and as JSON values under plain names.

In JSON `cost_usd` is always the mean of a question, in US dollars. What is not known is None.
"""

from collections.abc import Mapping
from typing import Any

from rich import table as drawn
from rich.console import Group, RenderableType
from rich.text import Text

from farthing.methods.baselines.models import NOT_ALONE
from farthing.money import significant
from farthing.process.value import AnswerFigures, PolicyValue
from farthing.promises.certificate import Certificate
from farthing.promises.figures import Figure
from farthing.recommendation.drift import LEVEL, Drift
from farthing.recommendation.evaluate import BundleEvaluation
from farthing.recommendation.pipeline import Calibrated
from farthing.reports.table import Table
from farthing.traces.grades.overlay import reference_of

Record = dict[str, Any]
LINES = {
    "cost_usd": "cost, USD a question",
    "total_cost_usd": "cost, USD in all",
    "coverage": "coverage",
    "coverage_solvable": "coverage given solvable",
    "in_set": "a right answer in the set",
    "solvable": "solvable questions",
    "accuracy": "accuracy of the best answer",
    "avg_len": "rounds",
    "set_size": "distinct answers",
    "set_size_leaves": "answers, with repetitions",
    "empty": "empty sets",
    "answered": "answered by the policy itself",
    "accuracy_answered": "accuracy of those answers",
}
"""Each metric of an evaluation as a reader calls it."""
OF_AGREEMENT = {
    "coverage": "coverage of its answer",
    "coverage_solvable": "coverage where it answered",
    "in_set": "its answer in the set",
    "solvable": "questions that it answered",
    "accuracy": "agreement of the best answer",
    "accuracy_answered": "agreement of those answers",
}
"""The same where an answer is graded by whether it is a model's."""
MONEY = ("cost_usd", "total_cost_usd")


def measured(found: BundleEvaluation) -> Group:
    """Show the money first, then every metric, its interval, and what was promised."""
    reference = reference_of(found.value.grade)
    headings = LINES if reference is None else LINES | OF_AGREEMENT
    by = "" if reference is None else f", by the answers of {reference}"
    lines = []
    for metric, heading in headings.items():
        if metric not in found.metrics:
            continue
        value = found.metrics[metric]
        shown = significant(value) if metric in MONEY else f"{value:.3f}"
        interval = found.intervals.get(metric)
        ends = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else ""
        lines.append((heading, shown, ends))
    table = Table.of((f"Of these questions{by}", "Value", "95 % interval"), lines)
    worth = _beside(found.value, found.alone)
    return Group(worth, Text(""), table, Text(""), *_judgement(found))


def promised(certificate: Certificate, value: PolicyValue | None = None) -> Group:
    """Show what it costs, what is promised, in plain words too, on what evidence, until when."""
    plain = f"In plain words: {certificate.plain_language()}"
    worth = [] if value is None else [*map(Text, value.lines()), Text("")]
    return Group(*worth, Text(certificate.sentence()), Text(plain), Text(""), _facts(certificate))


def _facts(certificate: Certificate) -> drawn.Table:
    """Show what a certificate says beside its sentence."""
    table = drawn.Table.grid(padding=(0, 2, 0, 0))
    table.add_row(
        "threshold", f"kappa = {certificate.kappa:.4g}{certificate.promise.rank(certificate)}"
    )
    if (spread := certificate.promise.spread()) is not None:
        low, high = spread
        table.add_row("evidence", f"coverage of {low:.3f} to {high:.3f} in 95 % of such draws")
    for name, sentences in (
        ("holds if", certificate.conditional_on),
        ("ends when", certificate.invalid_when),
    ):
        for i, sentence in enumerate(sentences):
            table.add_row("" if i else name, sentence)
    return table


def _judgement(found: BundleEvaluation) -> list[RenderableType]:
    certificate = found.bundle.certificate
    if certificate is None:
        return [Text("Nothing is promised: the bundle was not calibrated.")]
    if found.judged is None:
        return [promised(certificate)]
    return [promised(certificate), Text(""), Text(found.judged.sentence())]


def _beside(value: PolicyValue, alone: Mapping[str, AnswerFigures | None]) -> Group:
    """Show the policy, each single model, and what is saved against the reference.

    Of a model that was not recorded alone there are no figures.
    """
    timed = any(one and one.latency_s for one in (value.yours, *alone.values()))
    headings = (
        f"{value.yours.questions:,} {value.part} questions",
        "USD a question",
        value.measure.capitalize(),
        *(("Median", "95th") if timed else ()),
    )
    unanswered = value.yours.unanswered
    you = f"You, {unanswered:,} unanswered" if unanswered else "You"
    lines = [[you, *_cells(value.yours)]]
    lines += [
        [f"Always {role}", *(_cells(figures) if figures else [NOT_ALONE])]
        for role, figures in alone.items()
    ]
    lines = [line + [""] * (len(headings) - len(line)) for line in lines]
    return Group(Table.of(headings, lines, bold=(0,)), *map(Text, value.findings()))


def _cells(figures: AnswerFigures) -> list[str]:
    seconds = figures.latency_s or ()
    times = [f"{significant(each)} s" for each in seconds]
    return [significant(figures.cost_usd), f"{figures.accuracy:.3f}", *times]


def evaluated(found: BundleEvaluation) -> Record:
    """Return how a bundle did on its test questions."""
    return {
        "cost_usd": found.metrics["cost_usd"],
        "metrics": dict(found.metrics),
        "intervals": dict(found.intervals),
        **_promise_record(found.bundle.certificate),
        "judged": None if found.judged is None else _judged_record(found.judged),
        "value": _value_record(found.value),
        "models": {role: each and _figures_record(each) for role, each in found.alone.items()},
        "sizes": dict(found.sizes),
        "notes": list(found.notes),
    }


def calibrated(done: Calibrated, notes: tuple[str, ...] = ()) -> Record:
    """Return what was promised; `notes` are doubts beside those of the calibration."""
    return {
        "cost_usd": done.value and done.value.yours.cost_usd,
        **_promise_record(done.certificate),
        "value": done.value and _value_record(done.value),
        "outlook": done.outlook or None,
        "left": done.left or None,
        "sizes": dict(done.sizes),
        "notes": [*done.notes, *notes],
    }


def checked(found: Drift) -> Record:
    """Return whether a certificate still applies."""
    return {
        "applies": found.applies,
        "p_value": found.p_value,
        "level": LEVEL,
        "sentence": found.sentence(),
        "sizes": {"calibrate": found.n_old, "new": found.n_new},
    }


def _promise_record(certificate: Certificate | None) -> Record:
    if certificate is None:
        return {"promises": False, "sentence": None, "plain_language": None, "certificate": None}
    return {
        "promises": certificate.promises,
        "sentence": certificate.sentence(),
        "plain_language": certificate.plain_language(),
        "certificate": certificate.to_json(),
    }


def _judged_record(judged: Figure) -> Record:
    said = {"verdict": judged.verdict, "sentence": judged.sentence()}
    return {**vars(judged), "besides": judged.besides and _judged_record(judged.besides), **said}


def _value_record(value: PolicyValue) -> Record:
    return {
        "part": value.part,
        "measure": value.measure,
        "yours": _figures_record(value.yours),
        "reference": value.reference,
        "theirs": value.theirs and _figures_record(value.theirs),
        "saved": value.saved,
        "saved_interval": value.saved_interval,
        "gained": value.gained,
        "gained_interval": value.gained_interval,
        "instead": value.instead,
        "sentences": value.lines(),
    }


def _figures_record(figures: AnswerFigures) -> Record:
    """Return figures; `accuracy` is agreement where that is what is measured."""
    return {
        "questions": figures.questions,
        "cost_usd": figures.cost_usd,
        "accuracy": figures.accuracy,
        "unanswered": figures.unanswered,
        "latency_s": figures.latency_s,
    }

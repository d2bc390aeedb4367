"""How one bundle did on its test questions, for a terminal."""

from rich import table as drawn
from rich.console import Group, RenderableType
from rich.text import Text

from farthing.money import significant
from farthing.process.value import Value
from farthing.promises.certificate import Certificate
from farthing.recommendation.evaluate import BundleEvaluation
from farthing.reports.table import Table
from farthing.reports.value import beside
from farthing.traces.grades.named import reference_of

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
    worth = beside(found.value, found.alone)
    return Group(worth, Text(""), table, Text(""), *_promise(found))


def promised(certificate: Certificate, value: Value | None = None) -> Group:
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


def _promise(found: BundleEvaluation) -> list[RenderableType]:
    certificate = found.bundle.certificate
    if certificate is None:
        return [Text("Nothing is promised: the bundle was not calibrated.")]
    if found.judged is None:
        return [promised(certificate)]
    return [promised(certificate), Text(""), Text(found.judged.sentence())]

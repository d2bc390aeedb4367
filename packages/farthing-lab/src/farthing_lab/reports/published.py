"""Which figures of the paper belong beside which of ours."""

from dataclasses import dataclass
from fractions import Fraction

from farthing.recommendation.base import Comparison, Row
from farthing.reports.base import ran, rows_at
from farthing_lab.comparison.published import TEST_QUESTIONS

CORRECTED, AS_PRINTED = "ccpo", "ccpo-published"
"""CCPO with its constraint corrected, and as the paper has it: the paper's figures are of this."""


@dataclass(frozen=True)
class Published:
    """One line of a table of the paper."""

    policy: str
    cost_usd: float
    """Dollars a question."""
    coverage: float
    avg_len: float
    set_size: float
    """Answers with repetitions: the paper counts leaves."""
    table: int
    """The number of the table in the paper."""


def beside(comparison: Comparison, alpha: Fraction) -> list[tuple[Row, Published]]:
    """Pair our rows of one alpha with the paper's of the same policy and alpha."""
    papers = {
        str(entry["policy"]): Published(
            str(entry["policy"]),
            float(entry["cost_usd"]),
            float(entry["coverage"]),
            float(entry["avg_len"]),
            float(entry["set_size"]),
            int(entry["table"]),
        )
        for entry in comparison.published
        if Fraction(str(entry["alpha"])) == alpha
    }
    return [(row, papers[row.policy]) for row in rows_at(comparison, alpha) if row.policy in papers]


def notes(comparison: Comparison, alpha: Fraction) -> tuple[str, ...]:
    """Say what stands on either side of the stroke, and who has no figure in the paper."""
    pairs = beside(comparison, alpha)
    table = ", ".join(str(n) for n in dict.fromkeys(paper.table for _, paper in pairs))
    sides = (
        "before the stroke ours, on made-up questions; behind it the paper's, as printed in table "
        f"{table} of arXiv 2511.11828, on {TEST_QUESTIONS} recorded ones"
    )
    shown = {row.policy for row, _ in pairs}
    others = [r for r in rows_at(comparison, alpha) if ran(r) and r.policy not in shown]
    if not others:
        return (sides,)
    without = f"not in the paper: {', '.join(row.label for row in others)}"
    for row in others:
        if row.policy == CORRECTED:
            without += f"; {row.label} has a corrected constraint, the paper's own is {AS_PRINTED}"
    return (sides, without)

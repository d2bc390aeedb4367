"""Which figures of the paper belong beside which of ours."""

from dataclasses import dataclass
from fractions import Fraction

from farthing.experiments.base import Comparison, Row
from farthing.reports.base import rows_at


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


def beside(comparison: Comparison, alpha: Fraction) -> list[tuple[Row, Published]]:
    """Pair our rows of one alpha with the paper's of the same policy and alpha."""
    papers = {
        str(entry["policy"]): Published(
            str(entry["policy"]),
            float(entry["cost_usd"]),
            float(entry["coverage"]),
            float(entry["avg_len"]),
            float(entry["set_size"]),
        )
        for entry in comparison.published
        if Fraction(str(entry["alpha"])) == alpha
    }
    return [(row, papers[row.policy]) for row in rows_at(comparison, alpha) if row.policy in papers]

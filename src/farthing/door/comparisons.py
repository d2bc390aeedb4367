"""Methods held together on the same splits of the same questions."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.calibration.base import Level, exact_level
from farthing.errors import InputError
from farthing.experiments.compare import Plan
from farthing.experiments.compare import compare as compare_methods

if TYPE_CHECKING:
    from farthing.experiments.base import Comparison
from farthing.door.drawing import drawn
from farthing.door.questions import Traces


@dataclass(frozen=True)
class Compared:
    """Methods on the same splits of the same questions; printed, it is a table."""

    comparison: "Comparison"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row a method and alpha: means and standard errors of every metric."""
        from farthing.experiments.results import results  # noqa: PLC0415

        return [dict(row) for row in results(self.comparison)]

    def report(self, folder: str | Path) -> Path:
        """Write `results.json`, `table.md` and `report.html`; return the page."""
        from farthing.reports.page import write_report  # noqa: PLC0415

        *_, page = write_report(self.comparison, Path(folder))
        return page

    def __str__(self) -> str:
        """Return the table that `farthing compare` prints."""
        from farthing.reports.tables import render_tables  # noqa: PLC0415

        return drawn(render_tables(self.comparison))


def compare(
    traces: Traces,
    methods: Sequence[str] | None = None,
    *,
    alpha: Level = Fraction(1, 10),
    splits: int = 100,
    seed: int = 0,
) -> Compared:
    """Compare methods on many splits of the same questions.

    Trainings run in processes of their own, so a script calls this under
    `if __name__ == "__main__":`.

    Args:
        traces: the questions.
        methods: their names; None: all that can run here.
        alpha: the promised share of misses.
        splits: times that calibration and test are drawn anew.
        seed: of the divisions and of the training.
    """
    if isinstance(methods, str):
        methods = [methods]
    if splits < 1:
        raise InputError(f"{splits} splits compare nothing; ask for 1 or more")
    names = None if methods is None else tuple(methods)
    plan = Plan((exact_level(alpha),), names, splits=splits, seed=seed)
    return Compared(compare_methods(traces.dataset, plan))

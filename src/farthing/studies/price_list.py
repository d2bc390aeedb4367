"""What each model of some traces costs, and how often it is right."""

from dataclasses import dataclass

from farthing.money import significant
from farthing.reports.table import Record, Table
from farthing.studies.study import StudyContext, StudyReport, TracesFiles, file_names


@dataclass(frozen=True)
class PriceList:
    """Show what each recorded model costs a question, and how often it is right.

    Example: farthing study prices --traces pool.jsonl.gz
    """

    traces: TracesFiles

    def measure(self, context: StudyContext) -> list[Record]:
        """Take means over the recorded calls."""
        arrays = context.read_traces(*self.traces)
        context.check_costs(arrays)
        rows = []
        for place, role in enumerate(arrays.roles):
            made = arrays.made[:, 0, place]
            cost = float(arrays.cost_nano[made, 0, place].mean()) / 1e9
            rows.append({"model": role, "usd": cost, "right": float(arrays.correct[made, 0, place].mean())})
        return sorted(rows, key=lambda row: row["usd"])

    def report(self, measured: list[Record]) -> StudyReport:
        """List the cheapest first."""
        columns = [
            ("Model", lambda row: row["model"]),
            ("USD a question", lambda row: significant(row["usd"], 4)),
            ("right", lambda row: f"{row['right']:.1%}"),
        ]
        return StudyReport(file_names(self.traces), (Table(columns, measured),), {"rows": measured})

"""A scoreboard: a row a call, with the columns item, who, point and dollars."""

from collections.abc import Iterator
from dataclasses import dataclass

from farthing.traces.importers.base import ImportedCall, ImportEvent, Options
from farthing.traces.importers.row import MOST_USD
from farthing.traces.importers.source import Source

FIELDS = {"item", "who", "point", "dollars"}


@dataclass(frozen=True)
class Scoreboard:
    """Reads one call a row."""

    name: str = "scoreboard"
    meaning: str = "A scoreboard: item, who, point, dollars"

    def sniff(self, source: Source) -> bool:
        """Return whether the columns are these."""
        return set(source.fields) >= FIELDS

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        """Yield a call for each row."""
        for row in source.rows():
            score = row.score("point")
            yield ImportedCall(
                place=row.place,
                model=row.text("who") or "",
                id=row.text("item"),
                question=row.text("item") or "",
                correct=options.grade(score),
                score=score,
                cost_usd=row.number("dollars", most=MOST_USD),
            )


SCOREBOARD = Scoreboard()

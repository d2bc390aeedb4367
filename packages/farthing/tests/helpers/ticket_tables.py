"""Tables of tickets that a model was asked about, as people keep them."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

COLUMNS = ("prompt", "model", "response", "cost_usd", "")


def rows(n: int = 200) -> Iterator[tuple[str, ...]]:
    for number in range(n):
        yield f"Ticket {number} about billing.", "large", "Billing", "0.001", "x"


def written(path: Path, header: Sequence[str], more: Sequence[str] = ()) -> Path:
    """Write a table, as the suffix says; `more` ends each row."""
    lines = [(*row, *more) for row in rows()]
    with path.open("w") as file:
        if path.suffix == ".csv":
            csv.writer(file).writerows([header, *lines])
        else:
            records = (dict(zip(header, row, strict=True)) for row in lines)
            file.writelines(json.dumps(record) + "\n" for record in records)
    return path

"""Writes the made-up questions of docs/how-to/python.md, as that page's code makes them.

`pool.jsonl` has their accepted answers, `logs.jsonl` has none.
"""

import json
import re
from doctest import DocTestParser
from itertools import groupby
from pathlib import Path
from typing import Any

OF_A_CALL = ("model", "answer", "cost_usd")
PAGE = Path(__file__).parents[3] / "docs/how-to/python.md"


def rows() -> list[dict[str, Any]]:
    """Run the page's first session, but for what it shows; return its rows, one a call."""
    session = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert session
    found: dict[str, Any] = {}
    for example in DocTestParser().get_examples(session[1]):
        if not example.want:
            exec(example.source, found)
    made: list[dict[str, Any]] = found["rows"]
    return made


def write() -> None:
    """Write a line a question."""
    graded, ungraded = [], []
    for _, asked in groupby(rows(), lambda row: row["id"]):
        calls = list(asked)
        question = {name: value for name, value in calls[0].items() if name not in OF_A_CALL}
        called = [
            {"round": 1, "role": each["model"]} | {name: each[name] for name in OF_A_CALL}
            for each in calls
        ]
        graded.append(json.dumps(question | {"calls": called}) + "\n")
        del question["gold"]
        ungraded.append(json.dumps(question | {"calls": called}) + "\n")
    Path("pool.jsonl").write_text("".join(graded))
    Path("logs.jsonl").write_text("".join(ungraded))


if __name__ == "__main__":
    write()

"""The threat model names tests that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[5]
TEXT = (ROOT / "docs/explanation/threat-model.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:[\w/]+\.py(?:::\w+)?)|monitoring/)`", TEXT)))


@pytest.mark.parametrize("named", NAMED)
def test_each_test_is_there(named: str) -> None:
    name, _, test = named.partition("::")
    file = ROOT / name if name.startswith("benchmarks/") else Path(__file__).parents[1] / name
    assert file.exists()
    assert not test or f"def {test}(" in file.read_text()


def test_each_row_names_one() -> None:
    section = TEXT.split("## What stops them")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    rows = [row for row in rows if not row.startswith("| ---")]
    assert len(rows) > 15
    for row in rows:
        assert re.search(r"`[\w/]+(\.py|/)(::\w+)?`", row.rsplit(" | ", 1)[1]), row

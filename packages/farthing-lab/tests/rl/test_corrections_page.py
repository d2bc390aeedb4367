"""The page on CCPO names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
SECTION = (
    (ROOT / "docs/research/ccpo.md").read_text().split("### Which test holds")[1].split("\n## ")[0]
)
ROWS = re.findall(r"^\| (.+?) \| (.+?\.py) \| (`.+`) \|$", SECTION, re.MULTILINE)


def test_the_table_is_read() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize(("correction", "files", "tests"), ROWS, ids=lambda cell: cell[:40])
def test_every_named_test_exists(correction: str, files: str, tests: str) -> None:
    text = "".join(
        one.read_text()
        for file in files.split(", ")
        for one in ROOT.glob(f"packages/*/tests/{file}")
    )
    for name in re.findall(r"`(test_\w+?)(?:\.\.\.)?`", tests):
        assert f"def {name}" in text, f"{correction}: {name}"

"""The tables of fields in the documentation are those of the code, with their defaults."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farthing.runtime.job import JobSection
from farthing_gateway.config_sections import (
    BudgetSection,
    PacingSection,
    PageSection,
    PolicySection,
    RecordSection,
    ServeSection,
    WatchSection,
)

DOCS = Path(__file__).parents[4] / "docs"
PAGE = (DOCS / "reference/gateway.md").read_text()
TUTORIAL = (DOCS / "tutorials/serve-it.md").read_text()
TABLES: dict[str, type[msgspec.Struct]] = {
    "[serve]": ServeSection,
    "[record]": RecordSection,
    "[watch]": WatchSection,
    "[page]": PageSection,
    "[policies.NAME]": PolicySection,
    "[policies.NAME.pacing]": PacingSection,
    "[[budgets]]": BudgetSection,
}


def documented(section: str) -> dict[str, str]:
    """Return the fields of a section's table, each with its default as it is written."""
    fields = PAGE.split("## All fields", maxsplit=1)[1]
    after = fields.split(f"\n`{section}`", maxsplit=1)[1]
    table = after.split("| --- | --- | --- |\n", maxsplit=1)[1].split("\n\n", maxsplit=1)[0]
    cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines()]
    return {name.strip("`"): default.strip("`") for name, default in cells}


def written(field: msgspec.structs.FieldInfo) -> str:
    """Return a default as TOML; nothing where there is none, or where it is None."""
    default: Any = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        default = field.default_factory()
    return "" if default in (msgspec.NODEFAULT, None) else json.dumps(default)


@pytest.mark.parametrize("section", TABLES)
def test_every_field_is_documented_with_its_default(section: str) -> None:
    fields = msgspec.structs.fields(TABLES[section])
    assert documented(section) == {one.name: written(one) for one in fields}


def test_every_field_of_a_job_is_documented() -> None:
    section = (DOCS / "reference/job.md").read_text().split("## The job\n")[1].split("\n## ")[0]
    named = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert named[0] == "task"
    assert set(named) == {one.name for one in msgspec.structs.fields(JobSection)}


def test_the_first_example_can_be_read() -> None:
    (example,) = re.findall(r"```toml\n# serve.toml\n(.*?)```", TUTORIAL, re.DOTALL)
    tables = tomllib.loads(example)
    assert "prices" in tables
    (policy,) = tables["policies"].values()
    read = msgspec.convert(policy, PolicySection)
    assert read.temperature == 0
    assert read.max_tokens is not None


def test_the_service_can_reach_postgresql() -> None:
    unit = (DOCS.parent / "deploy/farthing.service").read_text()
    assert '"farthing[serve,postgres]"' in unit

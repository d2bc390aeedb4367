"""A study from outside: one class gets a command, help, a table and JSON."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from farthing import plugins
from farthing.errors import InputError
from farthing.reports.table import Table
from farthing_lab.cli.study import app, command_of
from farthing_lab.studies.study import Seed, StudyContext, StudyOption, StudyReport


@dataclass(frozen=True)
class CoinToss:
    """Say how often a coin falls heads."""

    lost: ClassVar[str] = "no coin fell"

    tosses: Annotated[int, StudyOption("How often it is tossed.", metavar="N", least=1)]
    budget: Annotated[Fraction | None, StudyOption("For all of them.")] = None
    seed: Seed = 0

    def measure(self, context: StudyContext) -> int:
        """Toss it."""
        if self.budget is not None and self.budget < 1:
            raise InputError("a toss costs a dollar")
        context.progress("tossing").update(self.tosses, self.tosses, {})
        context.remark(f"seed {self.seed}")
        return self.tosses // 2

    def report(self, measured: int) -> StudyReport:
        """Say how often."""
        table = Table(
            (("Side", lambda r: r["side"]), ("share", lambda r: f"{r['share']:.0%}")),
            [
                {"side": "[heads]", "share": measured / self.tosses},
                {"side": "<tails>", "share": 1 - measured / self.tosses},
            ],
            bold=(0,),
        )
        body = (table, "That is all.")
        return StudyReport(f"{self.tosses} tosses", body, {"rows": table.records}, "A key.")


@pytest.fixture
def toss() -> Callable[..., Any]:
    program = typer.Typer()
    program.command()(command_of(CoinToss))
    return lambda *given: CliRunner().invoke(program, list(given))


def test_a_class_is_a_command_with_a_table(toss: Callable[..., Any]) -> None:
    done = toss("--tosses", "4", "--seed", "3")
    assert done.exit_code == 0
    assert done.stderr == "seed 3\n"
    assert done.stdout.split("\n\n")[0] == "4 tosses"
    assert [line.split() for line in done.stdout.splitlines() if "%" in line] == [
        ["[heads]", "50%"],
        ["<tails>", "50%"],
    ]
    assert done.stdout.endswith("\nThat is all.\nA key.\n")


def test_its_record_is_json_and_its_fields_are_options(toss: Callable[..., Any]) -> None:
    rows = json.loads(toss("--tosses", "2", "--json").stdout)["rows"]
    assert rows[0] == {"side": "[heads]", "share": 0.5}
    helped = toss("--help").stdout
    for said in ("how often a coin falls heads", "--tosses", "x>=1", "--budget", "USD", "--seed"):
        assert said in helped
    assert isinstance(toss("--tosses", "2", "--budget", "0.5").exception, InputError)
    assert toss("--tosses", "0").exit_code == 2


def test_a_registered_study_is_in_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "names", lambda group: ["toss"] if group == "studies" else [])
    monkeypatch.setattr(plugins, "load", lambda _, name: {"toss": CoinToss}[name])
    done = CliRunner().invoke(app, ["toss", "--tosses", "6"])
    assert done.exit_code == 0
    assert done.stdout.startswith("6 tosses")
    assert "Say how often a coin" in CliRunner().invoke(app, ["--help"]).stdout


def test_what_stands_in_a_table_is_text_in_html_and_on_a_screen() -> None:
    report = CoinToss(2).report(1)
    table = report.body[0]
    assert isinstance(table, Table)
    assert "<td>&lt;tails&gt;</td>" in table.html
    assert table.cells == [["[heads]", "50%"], ["<tails>", "50%"]]
    narrow = Console(width=12, record=True)
    narrow.print(table)
    assert all(len(line) <= 12 for line in narrow.export_text().splitlines())

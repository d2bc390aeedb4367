"""What is said of a sweep: the table, the sentence and the files, from figures made up here."""

import csv
import io
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from rich.console import Console

from farthing.errors import InputError
from farthing.recommendation.base import METRICS, Comparison, Difference, Row
from farthing_lab.comparison.plan import Plan
from farthing_lab.studies.tuning import (
    SHOWN,
    Setting,
    SettingSearch,
    SettingSweep,
    Tuning,
    sweep_csv,
    sweep_record,
    verdict,
    write_sweep,
)

ALPHA = Fraction(1, 10)


def figures(cost: float) -> dict[str, float]:
    return dict.fromkeys(METRICS, 0.5) | {"cost_usd": cost, "coverage_solvable": math.nan}


def one(leaf: int | None, *costs: float) -> Setting:
    changed = {} if leaf is None else {"leaf": leaf}
    return Setting(changed, {"leaf": leaf or 20, "trees": 48}, tuple(map(figures, costs)))


def row(name: str, cost: float) -> Row:
    return Row(
        name, name, ALPHA, "split", dict.fromkeys(METRICS, [0.9] * 3) | {"cost_usd": [cost] * 3}
    )


def judged(*costs: float) -> Comparison:
    names = ("lookahead", "lookahead-tuned")
    rows = [row(name, cost) for name, cost in zip(names, costs, strict=False)]
    found = []
    if len(costs) == 2:
        dearer, cheaper = (0, 1) if costs[0] > costs[1] else (1, 0)
        gap = abs(costs[0] - costs[1])
        found = [
            Difference(
                ALPHA, names[dearer], names[cheaper], "cost_usd", gap, gap - 0.0001, gap + 0.0002
            )
        ]
    return Comparison("runs", "0" * 64, {}, 4, ("base", "guide"), 3, [0], rows, found)


def made(*tried: Setting, test: Comparison | None = None) -> SettingSweep:
    plan = Plan((ALPHA,), splits=3)
    sizes = {"train": 6, "calibrate": 2, "test": 2}
    return SettingSweep(
        "runs",
        "0" * 64,
        SettingSearch("lookahead", ("leaf=10,40",), folds=2),
        plan,
        sizes,
        tried,
        0,
        (),
        test,
    )


WHOLE = (one(None, 0.002, 0.004), one(10, 0.001, 0.003), one(40, 0.003, 0.006))


def drawn(sweep: SettingSweep) -> str:
    console = Console(width=80, file=io.StringIO())
    with console.capture() as text:
        console.print(Tuning("lookahead", Path("swept")).report(sweep))
    return text.get()


def test_the_table_is_sorted_and_holds_changes_on_the_same_folds() -> None:
    lines = drawn(made(*WHOLE, test=judged(0.003, 0.002))).splitlines()
    cells = [line.split()[:3] for line in lines if line.startswith(("leaf", "unchanged"))]
    assert cells[0] == ["leaf=10", "2.00", "-33.3%±0.0%"]
    assert cells[1][0] == "unchanged"
    assert cells[2] == ["leaf=40", "4.50", "+50.0%±16.7%"]
    assert max(map(len, lines)) <= 80


def test_the_sentence_says_what_test_questions_said_and_in_which_direction() -> None:
    gained = verdict(made(*WHOLE, test=judged(0.003, 0.002)))
    assert gained.startswith("Best: leaf=10. On 3 splits")
    assert "$2.00 per 1,000 at a coverage of 0.900, and unchanged $3.00" in gained
    assert "$1.00 less (95 % interval of the difference −$1.20 to −$0.900)" in gained
    lost = verdict(made(*WHOLE, test=judged(0.002, 0.003)))
    assert "$1.00 more (95 % interval of the difference $0.900 to $1.20)" in lost


def test_nothing_better_is_said_to_be_so() -> None:
    found = verdict(made(one(None, 0.001, 0.001), one(10, 0.002, 0.002), test=judged(0.001)))
    assert found.startswith("Nothing tried is cheaper than lookahead unchanged.")
    assert found.endswith("$1.00 per 1,000 at a coverage of 0.900.")


def test_what_is_unfinished_is_not_ranked() -> None:
    sweep = made(one(None, 0.002, 0.004), one(10, 0.001))
    assert verdict(sweep) == "3 of 4 trainings are done."
    assert "leaf=10" not in drawn(sweep)
    assert sweep_record(sweep)["winner"] is None
    assert len(sweep_csv(sweep).splitlines()) == 2


def test_a_long_table_ends_with_where_the_rest_is() -> None:
    many = [one(i, i / 1000, i / 1000) for i in range(1, SHOWN + 4)]
    found = drawn(made(one(None, 1.0, 1.0), *many, test=judged(0.003, 0.002)))
    assert "and 4 dearer ones: see results.csv" in found
    assert found.count("leaf=") == SHOWN + 1  # the sentence names the best again


def test_the_files_hold_every_setting_and_no_nan(tmp_path: Path) -> None:
    sweep = made(*WHOLE, test=judged(0.003, 0.002))
    write_sweep(sweep, tmp_path / "deep" / "folder")
    record = json.loads(
        (tmp_path / "deep/folder/results.json").read_text(), parse_constant=pytest.fail
    )
    assert record["winner"] == {"leaf": 10, "trees": 48}
    assert [t["cost_usd"] for t in record["settings"][2]["trainings"]] == [0.003, 0.006]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "deep/folder/results.csv").read_text())))
    assert [row["leaf"] for row in rows] == ["10", "20", "40"]
    assert [float(row["cost_usd"]) for row in rows] == pytest.approx([0.002, 0.003, 0.0045])
    assert {row["coverage_solvable"] for row in rows} == {""}


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write the results"):
        write_sweep(made(*WHOLE, test=judged(0.003, 0.002)), tmp_path / "file")

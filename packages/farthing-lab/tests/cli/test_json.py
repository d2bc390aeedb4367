"""`--json`: one JSON document on stdout, all else on stderr, the same exit codes."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farthing.cli.console import show_json

Farthing = Callable[..., Any]


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def document(done: Any) -> Any:
    """Read what was printed as other programs do, who know no NaN."""
    assert done.out.startswith(("{", "[")), done
    return json.loads(done.out, parse_constant=no_constant)


@pytest.fixture
def bundle(farthing: Farthing, runs: Path) -> str:
    assert farthing("train", "--traces", runs, "--policy", "stopping", "--out", "b").code == 0
    return "b"


def test_a_calibration_says_what_it_promises(farthing: Farthing, bundle: str, runs: Path) -> None:
    common = ("calibrate", "--bundle", bundle, "--traces", runs)
    found = document(done := farthing(*common, "--alpha", "0.2", "--json"))
    assert done.code == 0
    assert "questions: 120 to train, 40 to calibrate, 40 to test" in done.err
    assert found["certificate"]["promise"]["kind"] == "split"
    assert found["sentence"].startswith("A new question is covered with probability at least 0.8")
    assert found["plain_language"].startswith("At least 80 of 100 new questions")
    assert found["sizes"] == {"train": 120, "calibrate": 40, "test": 40}
    assert found["promises"] is True
    (note,) = found["notes"]
    assert f"note: {note}" in done.err
    assert found["value"]["part"] == "calibrate"
    assert found["cost_usd"] == found["value"]["yours"]["cost_usd"] > 0
    assert {"reference", "saved", "gained_interval", "measure"} <= found["value"].keys()


@pytest.mark.slow
def test_what_cannot_be_proved_is_said_with_the_same_exit_code(
    farthing: Farthing, bundle: str, runs: Path
) -> None:
    asked = ("--promise", "parity", "--epsilon", "0.001", "--delta", "0.001")
    done = farthing("calibrate", "--bundle", bundle, "--traces", runs, *asked, "--json")
    found = document(done)
    assert (done.code, found["promises"]) == (1, False)
    assert "the bundle is left as it was" in done.err
    assert found["left"]


@pytest.mark.slow
def test_an_evaluation_has_every_figure(farthing: Farthing, bundle: str, runs: Path) -> None:
    common = ("--bundle", bundle, "--traces", runs)
    bare = document(farthing("evaluate", *common, "--json"))
    assert (bare["promises"], bare["judged"]) == (False, None)
    farthing("calibrate", *common, "--alpha", "0.2")
    found = document(done := farthing("evaluate", *common, "--json"))
    assert (done.code, "40 to test" in done.err) == (0, True)
    metrics = found["metrics"]
    assert {"coverage", "accuracy", "avg_len", "set_size"} <= metrics.keys()
    assert found["cost_usd"] == metrics["cost_usd"]
    low, high = found["intervals"]["coverage"]
    assert low < metrics["coverage"] < high
    assert found["judged"]["value"] == metrics["coverage"]
    assert found["judged"]["verdict"] in {"kept", "missed within chance", "broken"}
    assert found["judged"]["promised"] == 0.8
    assert found["certificate"]["promise"]["kind"] == "split"
    assert set(found["models"]) == {"base", "guide"}
    assert found["models"]["base"] is None
    assert found["value"]["part"] == "test"
    assert found["notes"] == []


def test_a_pool_is_measured_beside_its_models(farthing: Farthing, pool: Path) -> None:
    common = ("--bundle", "b", "--traces", pool)
    farthing("train", "--traces", pool, "--policy", "pool-gain", "--out", "b")
    found = document(farthing("evaluate", *common, "--json"))
    figures = found["models"]["large"]
    assert (figures["questions"], figures["cost_usd"], figures["accuracy"]) == (6, 0.01, 1.0)
    assert found["value"]["theirs"] == figures


@pytest.mark.slow
def test_a_check_says_whether_the_certificate_applies(farthing: Farthing, runs: Path) -> None:
    sizes = ("--train", 60, "--calibrate", 130, "--test", 10)
    common = ("--bundle", "b", "--traces", runs, *sizes)
    farthing("train", *common[2:], "--policy", "stopping", "--out", "b")
    farthing("calibrate", *common)
    farthing("generate", "--preset", "mmlu-llama2-7b", "--n", 300, "--out", "other.jsonl.gz")
    for new, applies in ((runs, True), ("other.jsonl.gz", False)):
        done = farthing("check", *common, "--new", new, "--json")
        found = document(done)
        assert found["applies"] is (found["p_value"] >= found["level"])
        assert done.code == (0 if found["applies"] else 1)
        assert found["applies"] is applies
        assert found["sentence"].startswith("The scores of ")
        assert found["sizes"] == {"calibrate": 130, "new": 200 if applies else 300}


@pytest.mark.slow
def test_a_comparison_prints_the_rows_of_its_file(farthing: Farthing, runs: Path) -> None:
    asked = ("--policies", "random,fixed", "--splits", 3, "--workers", 1, "--out", "report")
    done = farthing("compare", "--traces", runs, *asked, "--json")
    assert done.code == 0
    assert document(done) == json.loads(Path("report/results.json").read_text())
    assert {"policy", "cost_usd", "coverage", "coverage_se"} <= document(done)[0].keys()
    assert "report: report/report.html" in done.err
    assert "2 policies" in done.err or "policies on" in done.err


def test_what_traces_hold(farthing: Farthing, runs: Path) -> None:
    done = farthing("traces", "info", runs, "--json")
    found = document(done)
    assert (done.code, done.err) == (0, "")
    assert (found["questions"], found["rounds"], found["ungraded"]) == (200, 4, 0)
    assert found["cost_usd"] == pytest.approx(found["total_cost_usd"] / 200)
    base, guide = found["roles"]
    assert (base["role"], guide["role"], base["latency_s"]) == ("base", "guide", None)
    assert guide["accuracy"] == pytest.approx(sum(guide["accuracy_by_round"]) / 4)
    assert guide["call_cost_usd"] > base["call_cost_usd"] > 0
    assert (found["splits"], found["groups"], found["independent"]) == ({}, {}, False)
    assert "verdict[guide]" in found["features"]["on"]


LINE = (
    '{"id": "%s", "independent": true, "split": "%s", "group": "g", "calls": '
    '[{"round": 1, "role": "small", "answer": "4", %s"latency_s": %s}]}'
)


def test_what_is_not_known_of_traces_is_null(farthing: Farthing) -> None:
    lines = [LINE % ("a", "train", '"correct": true, ', "1"), LINE % ("b", "test", "", "3")]
    Path("few.jsonl").write_text("\n".join(lines))
    done = farthing("traces", "info", "few.jsonl", "--json")
    found = document(done)
    (small,) = found["roles"]
    assert (small["model"], small["call_cost_usd"], small["latency_s"]) == (None, None, [2, 2.9])
    assert (found["splits"], found["groups"]) == ({"train": 1, "test": 1}, {"g": 2})
    assert (found["ungraded"], found["pool"]) == (1, True)
    assert found["notes"] == [
        "no call has a cost, so nothing is known of savings; record `cost_usd`"
    ]
    assert done.err == f"note: {found['notes'][0]}\n"


def test_methods_are_a_list_of_records(farthing: Farthing) -> None:
    done = farthing("methods", "--json")
    assert (done.code, done.err) == (0, "")
    assert {card["name"] for card in document(done)} >= {"ccpo", "lookahead"}


COMMANDS = ["calibrate", "evaluate", "check", "compare", "methods", "recommend", "ask"]


@pytest.mark.parametrize("command", [*COMMANDS, "traces info"])
def test_every_command_with_results_takes_it(farthing: Farthing, command: str) -> None:
    assert "--json" in farthing(*command.split(), "--help").out


def test_what_goes_wrong_leaves_stdout_empty(farthing: Farthing) -> None:
    done = farthing("traces", "info", "absent.jsonl", "--json")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("farthing: absent.jsonl")


@pytest.mark.slow
def test_a_pipe_gets_json_and_nothing_else(runs: Path) -> None:
    program = Path(sys.executable).with_name("farthing")
    command = [str(program), "traces", "info", str(runs), "--json"]
    done = subprocess.run(command, capture_output=True, env=dict(os.environ), check=True)
    assert json.loads(done.stdout)["questions"] == 200
    assert done.stderr == b""


def test_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    show_json({"nan": math.nan, "inside": [(math.inf, -math.inf)], "text": "Straße"})
    printed = capsys.readouterr().out
    assert "Straße" in printed
    assert json.loads(printed) == {"nan": None, "inside": [["inf", "-inf"]], "text": "Straße"}

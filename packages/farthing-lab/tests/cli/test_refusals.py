"""Whatever is wrong with the input: one line on stderr, exit code 2, no traceback."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Farthing = Callable[..., Any]
Refused = Callable[..., str]
COMPARE = ("--alpha", "0.1", "--out", "report", "--policies", "random,fixed,stopping")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "No such command"),
        (["study", "nonsense"], "`farthing study --help` lists them"),
        (["traces", "inof"], "did you mean 'info'"),
        (["compare", "--polices", "ccpo"], "--policies"),
        (["compare"], "--out"),
        (["compare", "--preset", "mmlu-llama2-7b", "--out", "x", "--alpha", "0"], "0.1"),
        (["compare", "--preset", "mmlu-llama2-7b", "--out", "x", "--alpha", "1.5"], "0.1"),
        (["compare", "--preset", "mmlu-llama2-7b", "--out", "x", "--alpha", "lots"], "0.1"),
        (["compare", "--preset", "mmlu-llama2-7b", "--out", "x", "--splits", "0"], "--splits"),
        (["compare", "--preset", "mmlu-llama", "--out", "x"], "did you mean 'mmlu-llama2-7b'"),
        (["compare", "--n", "ten", "--out", "x"], "'--n': must be a whole number"),
        (["compare", "--n", "0", "--out", "x"], "'--n': must be at least 1"),
        (["recommend", "--deadline", "-1", "--traces", "x"], "'--deadline': must be at least 0"),
        (["recommend", "--deadline", "soon", "--traces", "x"], "'--deadline': must be a number\n"),
        (["grade", "--check", "2", "--traces", "x", "--bundle", "x"], "must be at most 1"),
        (
            ["recommend", "--promise", "agrement", "--traces", "x"],
            "is 'agrement'; did you mean 'agreement'? There are parity, agreement, coverage, sel",
        ),
        (["recommend", "--epsilon", "2", "--traces", "x"], "it must be below 1, such as 0.02 (and"),
        (["compare", "--out", "x"], "either traces, such as runs.jsonl, or --preset NAME"),
        (["compare", "--preset", "mmlu-llama2-7b", "--traces", "a", "--out", "x"], "either"),
        (
            ["compare", "--preset", "mmlu-llama2-7b", "--population", "some", "--out", "x"],
            "solvable",
        ),
        (["compare", "--traces", "a.jsonl", "--n", "9", "--out", "x"], "--n goes with --preset"),
        (["generate", "--preset", "mmlu-llama2-7b", "--out", "a.txt"], ".jsonl"),
        (["generate", "--preset", "mmlu-llama2-7b", "--out", "no/such/a.jsonl"], "no/such"),
        (["traces", "info", "absent.jsonl"], "absent.jsonl"),
        (["traces", "info", "absent.db"], "absent.db"),
        (["traces", "info", "."], ".jsonl"),
        (["traces", "import", "absent.jsonl", "--store", "a.db"], "absent.jsonl"),
        (["traces", "export", "--store", "absent.db", "--out", "a.jsonl"], "absent.db"),
        (["calibrate", "--bundle", "absent", "--traces", "absent.jsonl"], "absent"),
    ],
)
def test_a_wrong_command_line(refused: Refused, arguments: list[str], says: str) -> None:
    assert says in refused(*arguments)


def test_an_epsilon_of_agreement_is_above_0(refused: Refused, pool: Path) -> None:
    for command in (
        ("recommend", "--traces", pool),
        ("calibrate", "--bundle", "x", "--traces", pool, "--delta", 0.1),
        ("compare", "--out", "x", "--traces", pool, "--delta", 0.1),
    ):
        said = refused(*command, "--promise", "agreement", "--epsilon", "0")
        assert "give one above 0, such as 0.05" in said


LINE = '{"id": "a", "calls": [{"round": 1, "role": "small", "correct": true}]}'


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("empty.jsonl", b"", "empty"),
        ("binary.jsonl", b"\x7fELF\x00\xff", "line 1"),
        ("binary.jsonl.gz", b"\x7fELF\x00\xff", "gz"),
        ("binary.parquet", b"PAR1\x7fELF\x00\xff", "cannot be read as Parquet"),
        ("binary.db", b"\x7fELF\x00\xff" * 99, "database"),
        ("broken.jsonl", f"{LINE}\n{{broken".encode(), "line 2"),
        ("negative.jsonl", LINE.replace("true", 'true, "cost_usd": -1').encode(), "cost_usd"),
        (
            "why.jsonl",
            LINE.replace("[{", '[{"asked_probability": 0, ').encode(),
            "asked_probability: is 0; it must be a number, above 0",
        ),
        (
            "why.jsonl",
            LINE.replace('"a", ', '"a", "missing_because": "foo", ').encode(),
            'missing_because: is "foo"; it must be chance, earlier_reply or unknown',
        ),
        ("twice.jsonl", f"{LINE}\n{LINE}".encode(), "line 2"),
        ("folder.jsonl", None, "folder.jsonl"),
    ],
)
@pytest.mark.parametrize("command", ["info", "compare", "train"])
def test_a_wrong_file(
    refused: Refused, command: str, name: str, content: bytes | None, says: str
) -> None:
    path = Path(name)
    path.mkdir() if content is None else path.write_bytes(content)
    arguments = {
        "info": ["traces", "info", path],
        "compare": ["compare", "--traces", path, *COMPARE],
        "train": ["train", "--traces", path, "--policy", "random", "--out", "bundle"],
    }
    assert says in refused(*arguments[command])
    assert not Path("report").exists()
    assert not Path("bundle").exists()


def test_a_report_that_could_not_be_written_is_refused_before_the_work(
    refused: Refused, runs: Path
) -> None:
    Path("taken").write_text("a file")
    asked = ("compare", "--traces", runs, "--policies", "absent", "--out")
    assert "taken/report: " in (said := refused(*asked, "taken/report"))
    assert "taken is no folder that can be written to" in said
    assert "farthing: taken: is no folder that can be written to" in refused(*asked, "taken")


def test_a_file_that_could_not_be_written_is_refused_before_the_work(refused: Refused) -> None:
    Path("taken").write_text("a file")
    Path("folder.jsonl").mkdir()
    Path("b").mkdir()
    grade = ("grade", "--bundle", "b", "--traces", "absent.jsonl", "--epsilon", 0.1, "--delta", 0.1)
    for command in (
        ("generate", "--preset", "absent"),
        ("traces", "export", "--store", "absent.db"),
        grade,
    ):
        for place, says in (
            ("nowhere/a.jsonl", "nowhere/a.jsonl: there is no folder nowhere; make it, or name an"),
            ("taken/a.jsonl", "taken/a.jsonl: taken is no folder that can be written to"),
            ("folder.jsonl", "folder.jsonl: is a folder; name a file"),
        ):
            assert says in refused(*command, "--out", place)


def test_a_folder_that_cannot_be_made_is_found_before_training(
    refused: Refused, runs: Path
) -> None:
    place = "/proc/bundle"
    asked = ("train", "--traces", "absent.jsonl", "--policy", "random", "--out", place)
    assert f"{place}: /proc is no folder that can be written to" in refused(*asked)


def test_unknown_policies_are_refused_with_the_known_ones(refused: Refused, runs: Path) -> None:
    line = refused("compare", "--traces", runs, "--policies", "random,stoping", "--out", "x")
    assert "did you mean 'stopping'" in line
    line = refused("train", "--traces", runs, "--policy", "stoping", "--out", "x")
    assert "did you mean 'stopping'" in line
    assert "optimum" not in line
    line = refused("train", "--traces", runs, "--policy", "fixed-9", "--out", "x")
    assert "Nearest of" in line
    assert line.count("fixed-") == 5, "the name, what was meant, and the nearest three"


def test_too_few_questions_are_refused_with_the_numbers(refused: Refused, runs: Path) -> None:
    line = refused("compare", "--traces", runs, *COMPARE, "--train", 190, "--test", 100)
    assert "190 to train" in line
    assert "200 complete questions" in line


def test_policies_that_cannot_be_trained_say_why(refused: Refused, runs: Path) -> None:
    asked = ("train", "--traces", runs, "--out", "x", "--policy")
    assert "no replies recorded" in refused(*asked, "exit-guide")
    assert "fixed-1, fixed-2" in refused(*asked, "fixed")


def test_a_missing_extra_is_named(
    refused: Refused, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        name for name in sys.modules if name.startswith("farthing_lab.methods.ccpo.learner")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    line = refused("train", "--traces", runs, "--policy", "ccpo", "--out", "x")
    assert 'pip install "./packages/farthing-lab[lm]"' in line


def test_bundles_that_were_tampered_with_are_refused(
    refused: Refused, farthing: Farthing, runs: Path
) -> None:
    assert farthing("train", "--traces", runs, "--policy", "random", "--out", "b").code == 0
    body = json.loads(Path("b/bundle.json").read_text())
    Path("b/bundle.json").write_text(json.dumps(body | {"kappa": 0.5}))
    for command in ("calibrate", "evaluate"):
        assert "was changed" in refused(command, "--bundle", "b", "--traces", runs)


def test_bundles_are_refused_for_traces_of_other_roles(
    refused: Refused, farthing: Farthing, runs: Path, pool: Path
) -> None:
    assert farthing("train", "--traces", runs, "--policy", "random", "--out", "b").code == 0
    for command in ("calibrate", "evaluate"):
        assert "base and guide" in refused(command, "--bundle", "b", "--traces", pool)


def test_a_promise_without_what_it_needs_is_refused(
    refused: Refused, farthing: Farthing, runs: Path
) -> None:
    assert farthing("train", "--traces", runs, "--policy", "random", "--out", "b").code == 0
    asked = ("calibrate", "--bundle", "b", "--traces", runs, "--method")
    assert "delta" in refused(*asked, "pac")
    assert "group" in refused(*asked, "groups")
    assert "pac" in refused(*asked, "pax")
    assert "between 0 and 1" in refused(*asked, "pac", "--delta", "2")


def test_an_error_of_ours_is_one_line_too_and_exits_with_1(
    farthing: Farthing, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr("farthing.reports.traces.describe", broken)
    done = farthing("traces", "info", runs)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "please report this" in done.err
    monkeypatch.setenv("FARTHING_DEBUG", "1")
    assert "Traceback" in farthing("traces", "info", runs).err

"""Benchmarks say in one line that a recording is absent, and the log which ones are needed."""

import re
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
SCRIPTS = sorted([*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("experiments/*.py")])
READS = {
    "allocate.py": ("pools", "--traces", "FOLDER"),
    "bandits.py": ("pools", "--traces", "FOLDER"),
    "bidding.py": ("horizons", "--traces", "FOLDER"),
    "discount.py": ("recorded", "FILE"),
    "evidence_rows.py": ("FOLDER",),
    "experiments/labels_needed.py": ("--traces", "FOLDER"),
    "experiments/question_budget.py": ("--traces", "FOLDER"),
    "experiments/saving.py": ("--traces", "FOLDER"),
    "experiments/thinking.py": ("--traces", "FOLDER"),
    "fit_presets.py": ("FILE",),
    "gateway_day.py": ("--traces", "FILE"),
    "gateway_drift.py": ("--traces", "FILE"),
    "joining.py": ("--traces", "FOLDER"),
    "lazy.py": ("FILE",),
    "odar.py": ("recorded", "--traces", "FOLDER"),
    "opinions.py": ("--traces", "FOLDER"),
    "pacing.py": ("--traces", "FOLDER"),
    "pools.py": ("FOLDER",),
    "recommend.py": ("FOLDER",),
    "samples.py": ("lastletters", "--traces", "FOLDER"),
    "selective.py": ("--traces", "FILE"),
    "selective_recommended.py": ("FOLDER",),
    "votes.py": ("--traces", "FOLDER"),
}
"""What makes each script read recordings."""
NEEDS = {"mutations.py": ("cosmic_ray", "coverage"), "thinkers_trl.py": ("trl", "datasets")}
"""Packages that no extra brings, or none of those that tests have, by the script."""


def test_no_script_that_reads_recordings_is_forgotten() -> None:
    texts = {each.relative_to(BENCHMARKS).as_posix(): each.read_text() for each in SCRIPTS}
    assert {name for name, text in texts.items() if "from recordings import" in text} == set(READS)
    for name, text in texts.items():
        assert "shared/data" not in text or name in {*READS, "recordings.py"}


@pytest.mark.parametrize("script", READS)
@pytest.mark.parametrize("there", [True, False], ids=["an empty folder", "no folder"])
def test_an_absent_recording_is_one_line(
    script: str,
    there: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path if there else tmp_path / "absent"
    places = {"FOLDER": str(folder), "FILE": str(folder / "a.jsonl.gz")}
    monkeypatch.setattr("sys.argv", [script, *(places.get(each, each) for each in READS[script])])
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend((BENCHMARKS / script).parent)
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(BENCHMARKS / script), run_name="__main__")
    said = capsys.readouterr()
    assert (stop.value.code, said.out) == (2, "")
    assert said.err.startswith(str(folder))
    assert said.err.count("\n") == 1
    assert "docs/research/log.md" in said.err


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_what_a_benchmark_takes_from_the_package_is_there(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = [name for name in NEEDS.get(script.name, ()) if find_spec(name) is None]
    if absent:
        pytest.skip(f"{script.name} needs {', '.join(absent)}")
    monkeypatch.setattr("sys.argv", [script.name])
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(script.parent)
    runpy.run_path(str(script), run_name="read")


def test_an_entry_of_the_log_names_the_recordings_that_it_needs() -> None:
    research = ROOT / "docs/research"
    head = (research / "log.md").read_text().split("\n## Recordings\n")[1]
    known = dict(re.findall(r"^\| ([\w ]+) \| `([\w.-]+\.jsonl\.gz)`", head, re.MULTILINE))
    pages = [page.read_text() for page in research.glob("log-*.md")]
    entries = [entry for page in pages for entry in page.split("\n## ")[1:]]
    assert len(entries) > 90
    reads = [name.removeprefix("experiments/") for name in READS]
    for entry in entries:
        command, _, below = entry.partition("\nRecordings: ")
        named = re.split(r"\n| \(", below)[0].split(", ") if below else []
        assert set(named) <= set(known), entry[:80]
        command = re.split(r"\n(?:Setting: |\n)", command)[0]
        made_up = re.search(r"allocate.py knapsack|samples.py embedded", command)
        if "shared/data" in command or any(f"/{script}" in command for script in reads):
            assert named or made_up, entry[:80]
        for name, file in known.items():
            assert name in named or file not in command, entry[:80]

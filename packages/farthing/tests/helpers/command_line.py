"""The command line run in this process, as the installed script runs it."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farthing.cli import main
from farthing.traces.base import Call, Trace
from farthing.traces.jsonl import read_traces, write_traces


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Farthing = Callable[..., Done]
Import = Callable[..., Trace]


@pytest.fixture
def farthing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Farthing:
    """Run a command line in a folder of its own; return its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FARTHING_DEBUG", raising=False)

    def run(*arguments: object) -> Done:
        monkeypatch.setattr("sys.argv", ["farthing", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main.run()
        printed = capsys.readouterr()
        code = stop.value.code
        return Done(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run


@pytest.fixture
def refused(farthing: Farthing) -> Callable[..., str]:
    """Run a command line that is to be refused; return its one line."""

    def run(*arguments: object) -> str:
        done = farthing(*arguments)
        assert (done.code, done.out) == (2, ""), done
        assert done.err.count("\n") == 1
        assert done.err.startswith("farthing: ")
        assert "Traceback" not in done.err
        assert "unexpected" not in done.err
        return done.err

    return run


@pytest.fixture
def imported(farthing: Farthing) -> Import:
    """Import a file of one question, whose records are written as its suffix says; return it."""

    def run(name: str, content: Any, *options: object) -> Trace:
        for old in Path().glob("a.db*"):
            old.unlink()
        Path(name).write_text(csv_text(content) if name.endswith(".csv") else json.dumps(content))
        if name.endswith(".jsonl"):
            Path(name).write_text("".join(json.dumps(record) + "\n" for record in content))
        done = farthing("traces", "import", name, "--store", "a.db", "--task", "gsm8k", *options)
        assert done.code == 0, done.err
        assert farthing("traces", "export", "--store", "a.db", "--out", "out.jsonl").code == 0
        (trace,) = read_traces("out.jsonl")
        return trace

    return run


def csv_text(records: list[dict[str, Any]]) -> str:
    """Return records as CSV; lists and objects stand as JSON in their cells."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(records[0])
    for record in records:
        cells = record.values()
        writer.writerow([json.dumps(v) if isinstance(v, list | dict) else v for v in cells])
    return file.getvalue()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace file of 200 made-up questions, put to two roles in up to three rounds."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("traces") / "runs.jsonl.gz"
    right = {"base": 0.6, "guide": 0.8}
    write_traces(
        path,
        [
            Trace(
                id=f"q{number}",
                calls=[
                    Call(
                        round=at + 1,
                        role=role,
                        answer=str(int(rng.random() > chance)),
                        correct=None,
                        cost_usd=chance / 1_000,
                    )
                    for at in range(3)
                    for role, chance in right.items()
                ],
                gold=["0"],
            )
            for number in range(200)
        ],
    )
    return path


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace file of 30 questions that two models of a pool were asked."""
    path = tmp_path_factory.mktemp("pool") / "pool.jsonl"
    call = '{"round": 1, "role": "%s", "answer": "%s", "correct": %s, "cost_usd": %s}'
    lines = []
    for i in range(30):
        small = call % ("small", i % 3, "true" if i % 3 else "false", "0.001")
        large = call % ("large", "7", "true", "0.01")
        lines.append(f'{{"id": "q{i}", "independent": true, "calls": [{small}, {large}]}}')
    path.write_text("\n".join(lines))
    return path

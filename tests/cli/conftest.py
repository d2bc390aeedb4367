"""The command line run in this process, as the installed script runs it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from farthing.cli import main
from farthing.process.generator.generated_traces import generate_traces
from farthing.process.generator.presets import preset
from farthing.traces.jsonl import write_traces


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Farthing = Callable[..., Done]


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


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a trace file of 200 made-up questions."""
    path = tmp_path_factory.mktemp("traces") / "runs.jsonl.gz"
    config = preset("hotpotqa-llama2-7b").config
    write_traces(path, generate_traces(config, 200, np.random.default_rng(0)))
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

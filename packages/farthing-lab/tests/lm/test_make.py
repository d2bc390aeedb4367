"""Making networks by a tiny recipe: what is written, after a kill too, and by how many workers."""

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from farthing_lab.lm import supervised
from farthing_lab.lm.make import (
    LENGTHS,
    LOG,
    MEASURED_SEED,
    NetworkRecipe,
    Size,
    make,
    make_all,
    measure,
)
from farthing_lab.lm.supervised import BUCKET, TrainingCourse, TrainingProgress
from farthing_lab.lm.symbols import FIRST, WHOLE
from farthing_lab.models.embedded import known
from farthing_lab.tasks.arithmetic import Recipe

COURSE = TrainingCourse(steps=8 * BUCKET, batch=16, warm=4)
"""Long enough to learn how an answer ends; else measuring takes a while."""
ASKED = 2


def recipe(name: str, seed: int, *, calls: bool = False) -> NetworkRecipe:
    size, recipes = Size(1, 32), (Recipe("sums", 1, 0),)
    return NetworkRecipe(name, f"the {name} one", size, recipes, COURSE, (0.5, 2.0), seed, calls)


ONE = recipe("one", 1)
BOTH = (ONE, recipe("two", 3, calls=True))


def quiet(name: str, progress: TrainingProgress, steps: int) -> None:
    """Take no notice."""


def same_weights(first: Path, second: Path) -> bool:
    a, b = (load_file(folder / "model.safetensors") for folder in (first, second))
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def log_of(folder: Path) -> dict[str, Any]:
    """Return what a folder says of its making, but for what a clock says."""
    said: dict[str, Any] = json.loads((folder / LOG).read_text())
    assert said.pop("seconds") > 0
    return said


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made")
    make(ONE, out, quiet, ASKED)
    return out


@pytest.mark.slow
def test_a_folder_has_weights_tokenizer_and_a_log(made: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def watch(name: str, progress: TrainingProgress, steps: int) -> None:
        told.append((name, progress.step, steps))

    out = tmp_path / "again"
    done = make(ONE, out, watch, ASKED)
    assert told == [("one", step, 64) for step in range(BUCKET, 65, BUCKET)]
    assert same_weights(out / "one", made / "one"), "equal seeds, equal weights"
    names = {file.name for file in (out / "one").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", LOG} <= names
    said = json.loads((out / "one" / LOG).read_text())
    curve = said.pop("loss")
    assert [step for step, _ in curve] == list(range(BUCKET, 65, BUCKET))
    assert curve[-1][1] < curve[0][1]
    assert said == json.loads(json.dumps({**asdict(done), "device": said["device"]}))
    weights = load_file(out / "one" / "model.safetensors")
    assert done.parameters == sum(one.numel() for one in weights.values())
    assert len(done.measured) == sum(map(len, LENGTHS.values()))
    assert {one.asked for one in done.measured} == {ASKED}


@pytest.mark.slow
def test_a_killed_making_comes_to_the_same(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "EVERY_S", 0.0)

    def kill(name: str, progress: TrainingProgress, steps: int) -> None:
        if progress.step == 3 * BUCKET:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(ONE, tmp_path, kill, ASKED)
    assert [file.name for file in tmp_path.iterdir()] == [".one.training"]
    went_on: list[int] = []

    def note(name: str, progress: TrainingProgress, steps: int) -> None:
        went_on.append(progress.step)

    make(ONE, tmp_path, note, ASKED)
    assert went_on[0] == 4 * BUCKET
    assert same_weights(tmp_path / "one", made / "one")
    assert log_of(tmp_path / "one") == log_of(made / "one"), "with the whole curve of the loss"


@pytest.mark.slow
def test_two_workers_make_and_list_what_one_makes(made: Path, tmp_path: Path) -> None:
    told: set[str] = set()
    alone = [make(one, tmp_path / "alone", quiet, ASKED) for one in BOTH[1:]]
    shutil.copytree(made / "one", tmp_path / "alone" / "one")
    out = tmp_path / "together"
    done = make_all(BOTH, out, workers=2, watch=lambda name, *_: told.add(name), asked=ASKED)
    assert told == {"one", "two"}
    assert [one.name for one in done] == ["one", "two"]
    assert replace(done[1], seconds=0.0) == replace(alone[0], seconds=0.0)
    for name in told:
        assert same_weights(out / name, tmp_path / "alone" / name)
        assert log_of(out / name) == log_of(tmp_path / "alone" / name)
    first, second = known(out)
    assert (first.name, first.meaning) == ("one", "the one one")
    assert (second.name, second.parameters) == ("two", done[1].parameters)
    assert (second.input_per_million, second.output_per_million) == (0.5, 2.0)
    templates = [_template(out / name) for name in ("one", "two")]
    assert templates == [FIRST, WHOLE], "a controller reads what was said since as well"
    network = AutoModelForCausalLM.from_pretrained(out / "two")
    assert tuple(measure(network, ASKED, MEASURED_SEED, controls=True)) == done[1].measured


def _template(folder: Path) -> str:
    return str(AutoTokenizer.from_pretrained(folder).chat_template)

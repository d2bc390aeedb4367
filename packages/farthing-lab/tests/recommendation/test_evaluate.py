"""What a bundle is measured on."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.process.budget import PerQuestion
from farthing.promises.kinds.coverage import Coverage
from farthing.recommendation.certify import Serving
from farthing.recommendation.evaluate import evaluate
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.splits import Split
from farthing.traces.arrays import TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

ALPHA = Fraction(1, 10)


@pytest.fixture(scope="module")
def traces() -> TraceArrays:
    found = generate(preset("hotpotqa-llama2-7b").config, 1_400, np.random.default_rng(3))
    group = np.arange(len(found), dtype=np.int32) % 2
    recorded = np.where(np.arange(len(found)) % 50, 4, 3).astype(np.int16)
    return replace(found, group=group, group_names=("a", "b"), recorded=recorded)


def test_a_budget_a_question_holds_where_it_is_measured(
    traces: TraceArrays, tmp_path: Path
) -> None:
    """The budget pays for the first round of every question and for no second one."""
    most = traces.cost_nano.max(axis=(0, 1)).tolist()
    roles = dict(zip(traces.roles, most, strict=True))
    folder = tmp_path / "bundle"
    train(Dataset("", traces), "fixed-2", ALPHA, folder)
    apart = replace(traces, independent=np.ones(len(traces), dtype=bool))
    serving = Serving(PerQuestion(sum(roles.values()), roles))
    calibrate(folder, apart, Coverage(0.5), serving=serving)
    found = evaluate(folder, apart)
    assert found.metrics["avg_len"] == 1


def test_questions_that_were_met_before_are_counted(traces: TraceArrays, tmp_path: Path) -> None:
    split = Split(sizes={"train": 200, "calibrate": 150})
    train(Dataset("", traces), "uala", ALPHA, tmp_path / "b", split=split)
    calibrate(tmp_path / "b", traces, Coverage(1 - ALPHA), split=split)
    found = evaluate(tmp_path / "b", traces, split=Split(1))
    assert [" ".join(note.split()[:7]) for note in found.notes] == [
        "37 of the 275 test questions trained",
        "26 of the 275 test questions set",
    ]


def test_traces_of_other_rounds_are_refused(traces: TraceArrays, tmp_path: Path) -> None:
    train(Dataset("", traces), "uala", ALPHA, tmp_path / "b")
    shorter = replace(preset("hotpotqa-llama2-7b").config, rounds=3)
    with pytest.raises(InputError, match="these traces have 3 rounds"):
        evaluate(tmp_path / "b", generate(shorter, 9, np.random.default_rng(0)))

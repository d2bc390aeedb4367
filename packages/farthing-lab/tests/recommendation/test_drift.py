"""New questions against those that calibrated: few false alarms, and a changed mix is noticed."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.selective import Selective
from farthing.recommendation.drift import LEVEL, check
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.splits import Split
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

ALPHA = Fraction(1, 10)
COVERED = Coverage(1 - ALPHA)
SAME = preset("hotpotqa-llama2-7b").config
OTHER = preset("mmlu-llama2-7b").config


@pytest.fixture
def folder(small: Dataset, tmp_path: Path) -> Path:
    train(small, "stopping", ALPHA, tmp_path / "b")
    calibrate(tmp_path / "b", small.traces, COVERED)
    return tmp_path / "b"


@pytest.mark.slow
def test_the_same_mix_rarely_raises_an_alarm(small: Dataset, folder: Path) -> None:
    new = [generate(SAME, 100, np.random.default_rng(100 + i)) for i in range(20)]
    found = [check(folder, small.traces, part, split=Split(0)) for part in new]
    alarms = sum(not one.applies for one in found)
    assert stats.binomtest(alarms, 20, LEVEL, alternative="greater").pvalue > 1e-3
    assert (found[0].n_old, found[0].n_new) == (60, 100)
    assert len({one.p_value for one in found}) > 1


def test_another_mix_is_noticed(small: Dataset, folder: Path) -> None:
    other = generate(OTHER, 300, np.random.default_rng(1))
    found = check(folder, small.traces, other)
    assert not found.applies
    assert "does not apply" in found.sentence()


@pytest.mark.slow
def test_a_selective_promise_is_checked_by_the_scores_of_the_policy_that_buys(
    small: Dataset, folder: Path
) -> None:
    before = check(folder, small.traces, generate(SAME, 100, np.random.default_rng(1)))
    calibrate(folder, small.traces, Selective(Fraction(2, 3), Fraction(1, 5)))
    after = check(folder, small.traces, generate(SAME, 100, np.random.default_rng(1)))
    assert after == before


def test_refusals(small: Dataset, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not calibrated on"):
        check(folder, small.traces, small.traces, split=Split(1))
    train(small, "fixed-2", ALPHA, tmp_path / "f")
    with pytest.raises(InputError, match="not calibrated on"):
        check(tmp_path / "f", small.traces, small.traces)
    calibrate(tmp_path / "f", small.traces, COVERED)
    with pytest.raises(InputError, match="alike"):
        check(tmp_path / "f", small.traces, small.traces)

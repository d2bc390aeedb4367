"""From the command line: which marked questions choose the reference, lay thresholds out and prove.

A file marks its questions. `recommend` lets those to train train, those to calibrate prove, and
those to test measure; `train` and `calibrate` use the first two in turn, and `compare`
redraws all that do not train.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from told_pool import COST_USD, paid, records, traces, write

import farthing as ft
from farthing.recommendation import splits

Farthing = Callable[..., Any]
PARTS = ("train", "calibrate", "test")
N = 160
LOOSE = ("--promise", "parity", "--epsilon", "0.5", "--delta", "0.1")


MEDIUM = {role: [role == "medium" or i >= 0.3 * N for i in range(N)] for role in COST_USD}
"""Medium is right most often, and most is paid for another one."""
DEAR = {"small": 0.01}
"""What small costs where most is paid for it, rather than for large."""


def paid_for_small_in(part: str) -> Path:
    """Write questions: most is paid for small in one part, and for large in all others."""
    each = (paid(records(name, MEDIUM, split=name), DEAR if name == part else {}) for name in PARTS)
    return write(Path("pool.jsonl"), *each)


def certified() -> Any:
    certificate = ft.load("b").certificate
    assert certificate is not None
    return certificate


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_calibrate_takes_whom_most_was_paid_for_in_training(farthing: Farthing, part: str) -> None:
    path = paid_for_small_in(part)
    farthing("train", "--traces", path, "--policy", "always-medium", "--out", "b")
    farthing("calibrate", "--traces", path, "--bundle", "b", *LOOSE)
    assert certified().promise.reference == ("small" if part == "train" else "large")


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_recommend_takes_whom_most_was_paid_for_in_training(farthing: Farthing, part: str) -> None:
    """No question is left that takes no part, and those that prove and measure must not say it."""
    path = paid_for_small_in(part)
    done = farthing("recommend", "--traces", path, *LOOSE, "--json", "--out", "b")
    said = json.loads(done.out)
    expected = "small" if part == "train" else "large"
    assert said["reference"]["name"] == certified().promise.reference == expected


@pytest.mark.slow
def test_recommend_takes_no_reference_from_those_that_prove(farthing: Farthing) -> None:
    """Most is paid for small wherever it proves, and for large elsewhere."""
    every = [record for name in PARTS for record in records(name, MEDIUM, split=name)]
    arrays = traces(every).arrays
    ids = set(arrays.ids[splits.split_four_ways(arrays, 0).prove].tolist())
    assert len(ids) > N / 2
    told = [paid([one], DEAR if one["id"] in ids else {})[0] for one in every]
    path = write(Path("pool.jsonl"), told)
    done = farthing("recommend", "--traces", path, *LOOSE, "--json")
    assert json.loads(done.out)["reference"]["name"] == "large"


@pytest.mark.slow
def test_calibrate_proves_by_those_to_calibrate_and_no_others(farthing: Farthing) -> None:
    """Small is right in two parts, and wrong in the third."""
    kept = []
    for part in PARTS:
        right = {
            name: {role: [role != "small" or name != part] * N for role in COST_USD}
            for name in PARTS
        }
        each = (records(name, right[name], split=name) for name in PARTS)
        path = write(Path(f"{part}.jsonl"), *each)
        farthing("train", "--traces", path, "--policy", "always-small", "--out", part)
        asked = ("--promise", "parity", "--epsilon", "0.1", "--delta", "0.1")
        done = farthing(
            "calibrate", "--traces", path, "--bundle", part, *asked, "--reference", "large"
        )
        kept.append(done.code)
    assert kept == [0, 1, 0]

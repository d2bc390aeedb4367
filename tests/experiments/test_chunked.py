"""A file in chunks against the same questions all at once: equal to the last bit."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from farthing.calibration.base import Given
from farthing.calibration.split import split_threshold
from farthing.environments.generator import generate
from farthing.environments.presets import preset
from farthing.environments.replay import Outcome
from farthing.errors import TooFewTracesError
from farthing.experiments.chunked import measure, threshold
from farthing.experiments.evaluate import replay
from farthing.models.money import usd_from_nano
from farthing.policies.base import Policy
from farthing.policies.network import BLOCK, NetworkPolicy
from farthing.policies.random import RandomPolicy
from farthing.traces.arrays import TraceArrays
from farthing.traces.features import FeatureSet
from farthing.traces.parquet import write_parquet

ALPHA = Fraction(1, 10)


def network(traces: TraceArrays) -> NetworkPolicy:
    rng = np.random.default_rng(1)
    features = FeatureSet.fit(traces)
    sizes = [len(features.names), 64, 64, 64, traces.n_roles + 1]
    weights = [rng.normal(0, a**-0.5, (a, b)) for a, b in pairwise(sizes)]
    return NetworkPolicy(features, weights, [np.zeros(size) for size in sizes[1:]])


@pytest.fixture(scope="module")
def traces() -> TraceArrays:
    found = generate(preset("hotpotqa-llama2-7b").config, 2 * BLOCK + 901, np.random.default_rng(3))
    return replace(found, split=(np.arange(len(found)) % 3).astype(np.int8))


@pytest.fixture(scope="module")
def path(traces: TraceArrays, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chunked") / "traces.parquet"
    write_parquet(path, traces)
    return path


def by_hand(found: Outcome) -> dict[str, float]:
    """Return the metrics as plain means, not as the sums of chunks."""
    return {
        "cost_usd": usd_from_nano(int(found.cost_nano.sum())) / len(found.cost_nano),
        "total_cost_usd": usd_from_nano(int(found.cost_nano.sum())),
        "coverage": float(found.covered.mean()),
        "coverage_solvable": float(found.in_set[found.solvable].mean()),
        "in_set": float(found.in_set.mean()),
        "solvable": float(found.solvable.mean()),
        "accuracy": float(found.best_correct.mean()),
        "avg_len": float(found.length.mean()),
        "set_size": float(found.set_size.mean()),
        "set_size_leaves": float(found.set_size_leaves.mean()),
        "empty": float((found.set_size == 0).mean()),
    }


def assert_same(
    policy: Policy, traces: TraceArrays, path: Path, rows: int, *, given: Given, empty: str
) -> None:
    whole = replay(policy, traces, empty)
    expected = split_threshold(whole.followed.critical, ALPHA, given)
    assert threshold(policy, path, ALPHA, given=given, empty=empty, rows=rows) == expected
    for kappa in (expected.kappa, 0.2):
        found = measure(policy, path, kappa, empty=empty, rows=rows)
        assert found == by_hand(whole.act(kappa))


@pytest.mark.parametrize("rows", [1, 137, 10**6])
@pytest.mark.parametrize("given", ["all", "solvable"])
@pytest.mark.parametrize("empty", ["argmax", "allow"])
def test_chunks_give_the_threshold_and_metrics_of_the_whole(
    traces: TraceArrays, path: Path, rows: int, given: Given, empty: str
) -> None:
    if rows == 1:  # a chunk a question takes long
        traces = traces.rows(slice(60))
        path = path.with_name("short.parquet")
        write_parquet(path, traces)
    assert_same(RandomPolicy(), traces, path, rows, given=given, empty=empty)


def test_so_does_a_network_in_chunks_of_whole_blocks(traces: TraceArrays, path: Path) -> None:
    assert_same(network(traces), traces, path, BLOCK, given="all", empty="argmax")


def test_a_part_is_what_the_file_names_so(traces: TraceArrays, path: Path) -> None:
    part = traces.take(traces.split == 1)
    whole = replay(RandomPolicy(), part, "argmax")
    expected = split_threshold(whole.followed.critical, ALPHA)
    assert threshold(RandomPolicy(), path, ALPHA, part="calibrate", rows=500) == expected
    found = measure(RandomPolicy(), path, 0.3, part="calibrate", rows=500)
    assert found == by_hand(whole.act(0.3))


def test_a_part_that_no_question_has_is_refused(traces: TraceArrays, tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    write_parquet(path, traces.take(traces.split == 0))
    with pytest.raises(TooFewTracesError, match=r"no question of the part 'test'"):
        measure(RandomPolicy(), path, 0.3, part="test")

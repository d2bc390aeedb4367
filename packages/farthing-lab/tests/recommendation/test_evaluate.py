"""A bundle measured on a file in pieces, against the same questions all at once: the same."""

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from farthing.bundle import folder as bundles
from farthing.bundle.folder import load, save, write
from farthing.errors import InputError, TraceFormatError
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Dataset, Saveable
from farthing.process.budget import PerQuestion
from farthing.promises.kinds import none
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.recommendation.certify import Serving
from farthing.recommendation.evaluate import UNTOLD, BundleEvaluation, evaluate, evaluate_file
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.splits import DEFAULT, Split
from farthing.traces import parquet, parquet_file
from farthing.traces.arrays import TraceArrays
from farthing.traces.fingerprint import fingerprint
from farthing.traces.origin import origin_of
from farthing.traces.parquet import write_parquet
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo.policy import BLOCK, NetworkPolicy

ALPHA = Fraction(1, 10)
COVERED = Coverage(1 - ALPHA)
SIZES = {"train": 200, "calibrate": 150}
SPLIT = Split(sizes=SIZES)


class Bar:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        assert not figures
        self.seen.append((done, total))


@pytest.fixture(scope="module")
def traces() -> TraceArrays:
    found = generate(preset("hotpotqa-llama2-7b").config, 1_400, np.random.default_rng(3))
    group = np.arange(len(found), dtype=np.int32) % 2
    recorded = np.where(np.arange(len(found)) % 50, 4, 3).astype(np.int16)
    return replace(found, group=group, group_names=("a", "b"), recorded=recorded)


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write row groups of 500 questions, and score no more than 300 at a time."""
    monkeypatch.setattr(parquet, "CHUNK_ROWS", 500)
    monkeypatch.setattr(parquet_file.ChunkedTraces.batches, "__defaults__", (300,))


def assert_same(
    folder: Path, traces: TraceArrays, path: Path, rows: int = 137, split: Split = DEFAULT
) -> BundleEvaluation:
    """Compare all there is to compare, to the last bit."""
    write_parquet(path, traces)
    whole = evaluate(folder, traces, split=split)
    pieces = evaluate_file(folder, path, rows=rows, split=split)
    for field in fields(BundleEvaluation):
        if field.name != "bundle":
            assert getattr(pieces, field.name) == getattr(whole, field.name), field.name
    return pieces


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("fixed-2", 137),
        ("random", 137),
        ("random", 10**6),
        ("uala", 137),
        ("stopping", 137),
        ("lookahead-lambda", 137),
    ],
)
def test_pieces_give_the_figures_of_the_whole(
    traces: TraceArrays, tmp_path: Path, name: str, rows: int
) -> None:
    train(Dataset("", traces), name, ALPHA, tmp_path / "b", split=SPLIT)
    path = tmp_path / "traces.parquet"
    assert_same(tmp_path / "b", traces, path, rows, SPLIT)  # as it acts without a threshold
    calibrate(tmp_path / "b", traces, replace(COVERED, within_groups=True), split=SPLIT)
    found = assert_same(tmp_path / "b", traces, path, rows, SPLIT)
    assert found.sizes == {"train": 200, "calibrate": 150, "test": 1_022}
    assert found.notes == ()


def test_every_part_that_the_file_names_is_its_own(traces: TraceArrays, tmp_path: Path) -> None:
    split = np.random.default_rng(1).integers(-1, 3, len(traces)).astype(np.int8)
    traces = replace(traces, split=split)
    train(Dataset("", traces), "uala", ALPHA, tmp_path / "b")
    found = assert_same(tmp_path / "b", traces, tmp_path / "traces.parquet")
    assert found.sizes["test"] == int(((split == 2) & traces.complete).sum())


def test_a_promise_with_a_reference_is_judged_alike(traces: TraceArrays, tmp_path: Path) -> None:
    train(Dataset("", traces), "stopping", ALPHA, tmp_path / "b", split=SPLIT)
    asked = Parity("guide", Fraction(1, 2), ALPHA)
    assert calibrate(tmp_path / "b", traces, asked, split=SPLIT).certificate.promises
    found = assert_same(tmp_path / "b", traces, tmp_path / "traces.parquet", split=SPLIT)
    assert found.judged is not None
    assert found.judged.what == "accuracy less that of guide"


def test_questions_that_were_met_before_are_counted_once(
    traces: TraceArrays, tmp_path: Path
) -> None:
    train(Dataset("", traces), "uala", ALPHA, tmp_path / "b", split=SPLIT)
    calibrate(tmp_path / "b", traces, COVERED, split=SPLIT)
    write_parquet(tmp_path / "traces.parquet", traces)
    whole = evaluate(tmp_path / "b", traces, split=Split(1))
    pieces = evaluate_file(tmp_path / "b", tmp_path / "traces.parquet", split=Split(1), rows=137)
    assert pieces.notes == whole.notes
    assert len(pieces.notes) == 2


def test_a_pool_is_one_cascade_whichever_model_is_cheap_in_a_piece(
    traces: TraceArrays, tmp_path: Path
) -> None:
    """Costs of each model differ so much that pieces by themselves would be in other orders."""
    rng = np.random.default_rng(5)
    shape = (len(traces), 1, 3)
    answer = rng.integers(-1, 3, shape).astype(np.int16)
    cost = rng.geometric(1e-7 * np.array([1.1, 1.0, 0.9]), shape)
    cost[:400, :, 0] *= 3
    pool = replace(
        traces,
        roles=("x", "y", "z"),
        models=("mx", "my", "mz"),
        answer=answer,
        correct=(answer == 1),
        cost_nano=np.where(answer < 0, 0, cost),
        signals={},
        recorded=np.ones(len(traces), dtype=np.int16),
    )
    folder = tmp_path / "b"
    train(Dataset("", pool), "stopping", ALPHA, folder, split=SPLIT)
    assert load(folder).origin.models == ("my -> mz -> mx",)
    calibrate(folder, pool, COVERED, split=SPLIT)
    assert assert_same(folder, pool, tmp_path / "p.parquet", split=SPLIT).notes == ()


def test_so_do_models_that_are_asked_in_any_order(traces: TraceArrays, tmp_path: Path) -> None:
    pool = replace(
        traces.take(traces.complete),
        roles=("small", "large"),
        models=("small", "large"),
        recorded=np.ones(int(traces.complete.sum()), dtype=np.int16),
    )
    pool = replace(
        pool,
        answer=pool.answer[:, :1],
        correct=pool.correct[:, :1],
        cost_nano=pool.cost_nano[:, :1],
        largest_cost_nano=pool.largest_cost_nano[:, :1],
        ungraded=pool.ungraded[:, :1],
        made=pool.made[:, :1],
        signals={},
        independent=np.ones(len(pool), dtype=bool),
    )
    folder = tmp_path / "bundle"
    train(Dataset("", pool), "always-large", ALPHA, folder, split=SPLIT)
    assert assert_same(folder, pool, tmp_path / "p.parquet", split=SPLIT).metrics["avg_len"] == 1


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
    assert_same(folder, apart, tmp_path / "p.parquet")


def test_so_does_a_network(tmp_path: Path) -> None:
    many = generate(preset("hotpotqa-llama2-7b").config, BLOCK + 901, np.random.default_rng(4))
    features = FeatureSet.fit(many)
    rng = np.random.default_rng(1)
    sizes = [len(features.names), 64, 64, 64, many.n_roles + 1]
    weights = [rng.normal(0, a**-0.5, (a, b)) for a, b in pairwise(sizes)]
    policy = NetworkPolicy(features, weights, [np.zeros(size) for size in sizes[1:]])
    assert isinstance(policy, Saveable)
    save(
        tmp_path / "b",
        policy,
        origin=origin_of(many, fingerprint(many)),
        kappa=0.3,
        certificate=none.certify(0.3, fingerprint="none"),
    )
    told = {"train": frozenset[int]()}
    write(tmp_path / "b", structs.replace(load(tmp_path / "b"), questions=told))
    asked = Split(sizes={"train": 100, "calibrate": 100})
    assert_same(tmp_path / "b", many, tmp_path / "traces.parquet", split=asked)


def test_the_bar_counts_every_question_twice(traces: TraceArrays, tmp_path: Path) -> None:
    train(Dataset("", traces), "uala", ALPHA, tmp_path / "b")
    write_parquet(tmp_path / "traces.parquet", traces)
    bar = Bar()
    evaluate_file(tmp_path / "b", tmp_path / "traces.parquet", rows=500, progress=bar)
    assert [done for done, _ in bar.seen] == [500, 1_000, 1_400, 1_900, 2_400, 2_800]
    assert {total for _, total in bar.seen} == {2_800}


def test_what_cannot_be_measured_is_one_clear_line(traces: TraceArrays, tmp_path: Path) -> None:
    folder, path = tmp_path / "b", tmp_path / "traces.parquet"
    train(Dataset("", traces), "uala", ALPHA, folder)
    write_parquet(
        path,
        generate(
            replace(preset("hotpotqa-llama2-7b").config, rounds=3), 9, np.random.default_rng(0)
        ),
    )
    with pytest.raises(InputError, match="these traces have 3 rounds"):
        evaluate_file(folder, path)
    write_parquet(path, traces.rows(slice(0)))
    with pytest.raises(TraceFormatError, match="is empty"):
        evaluate_file(folder, path)
    path.write_text("no")
    with pytest.raises(TraceFormatError, match="cannot be read as Parquet"):
        evaluate_file(folder, path)
    write_parquet(path, traces)
    old = bundles.load(folder)
    assert isinstance(old.policy, Saveable)
    save(folder, old.policy, origin=old.origin)  # as an older version did
    assert evaluate_file(folder, path).notes == (UNTOLD,)

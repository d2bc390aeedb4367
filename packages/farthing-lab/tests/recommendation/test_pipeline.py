"""Train, calibrate and evaluate one policy in turn."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from farthing.bundle.folder import load, save
from farthing.errors import BundleError, InputError, TooFewTracesError, UnknownNameError
from farthing.methods.base import Dataset, Saveable
from farthing.process.batch_replay import followed, replay
from farthing.process.replay import paths
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.groups import groups_of
from farthing.recommendation.base import TIMES_OPTIMUM
from farthing.recommendation.evaluate import evaluate
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.splits import Split
from farthing.recommendation.warnings import STRANGERS
from farthing.traces.arrays import TraceArrays
from farthing.traces.splits import fixed_parts
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.plan import Plan
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

ALPHA = Fraction(1, 10)
COVERED = Coverage(1 - ALPHA)
SIZES = {"train": 100, "calibrate": 90, "test": 80}
SPLIT = Split(sizes=SIZES)


class StopsAt:
    """Presses Ctrl-C at the first report."""

    def update(self, done: int, total: int, figures: Mapping[str, float]) -> None:
        raise KeyboardInterrupt


def grouped(traces: TraceArrays) -> TraceArrays:
    group = np.arange(len(traces), dtype=np.int32) % 3
    return replace(traces, group=group, group_names=("a", "b", "c"))


def both_files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@pytest.mark.slow
def test_three_steps_are_one_split_of_a_comparison(small: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    trained = train(small, "stopping", ALPHA, folder, split=Split(2, SIZES))
    assert trained.sizes == SIZES
    assert load(folder).kappa is None
    calibrated = calibrate(folder, small.traces, COVERED, split=Split(2, SIZES))
    evaluated = evaluate(folder, small.traces, split=Split(2, SIZES))
    (row,) = compare(small, Plan((ALPHA,), ("stopping",), 1, seed=2, sizes=SIZES)).rows
    assert [calibrated.certificate.kappa] == row.kappa
    theirs = {name: values for name, values in row.per_split.items() if name != TIMES_OPTIMUM}
    assert {name: [value] for name, value in evaluated.metrics.items()} == theirs
    assert calibrated.notes == evaluated.notes == ()
    assert load(folder).certificate == calibrated.certificate


def test_the_parts_do_not_overlap_and_the_certificate_can_be_checked(
    small: Dataset, tmp_path: Path
) -> None:
    train(small, "uala", ALPHA, tmp_path / "b", split=SPLIT)
    calibrate(tmp_path / "b", small.traces, COVERED, split=SPLIT)
    parts = fixed_parts(small.traces, np.random.default_rng(0), **SIZES)
    used = np.concatenate([parts.train, parts.calibrate, parts.test])
    assert len(used) == len(set(used.tolist())) == 270
    bundle = load(tmp_path / "b")
    held = small.traces.take(parts.calibrate)
    assert bundle.certificate is not None
    critical = replay(bundle.policy, held, bundle.empty).critical
    assert bundle.certificate.verify(critical) == []


@pytest.mark.parametrize(
    "asked",
    [
        COVERED,
        replace(COVERED, delta=Fraction(1, 5)),
        replace(COVERED, within_groups=True),
        replace(COVERED, online=True),
    ],
    ids=["split", "pac", "groups", "online"],
)
def test_every_promise_is_saved_and_acted_on(
    small: Dataset, tmp_path: Path, asked: Coverage
) -> None:
    traces = grouped(small.traces)
    dataset, folder = replace(small, traces=traces), tmp_path / "b"
    train(dataset, "uala", ALPHA, folder, split=SPLIT)
    found = calibrate(folder, traces, asked, split=SPLIT)
    bundle = load(folder)
    assert bundle.certificate == found.certificate
    part = traces.take(fixed_parts(traces, np.random.default_rng(0), **SIZES).test)
    then = paths(followed(bundle.policy, part).scores, part, bundle.empty)
    of_group = groups_of(found.certificate)
    kappas = [
        of_group["abc"[g]].kappa if asked.within_groups else found.certificate.kappa
        for g in part.group
    ]
    covered = [
        bool(critical >= min(kappa, 1.0))
        for critical, kappa in zip(then.critical, kappas, strict=True)
    ]
    evaluated = evaluate(folder, traces, split=SPLIT)
    assert evaluated.metrics["coverage"] == pytest.approx(np.mean(covered))
    runs = then.reach >= np.minimum(kappas, 1.0)[:, None]
    assert evaluated.metrics["avg_len"] == pytest.approx(runs.sum(axis=1).mean())
    interval = stats.binomtest(sum(covered), 80).proportion_ci(method="exact")
    assert evaluated.intervals["coverage"] == pytest.approx((interval.low, interval.high))


def test_questions_of_no_known_group_take_the_safest_threshold(
    small: Dataset, tmp_path: Path
) -> None:
    traces, folder = grouped(small.traces), tmp_path / "b"
    train(replace(small, traces=traces), "uala", ALPHA, folder)
    found = calibrate(folder, traces, replace(COVERED, within_groups=True))
    strangers = evaluate(folder, replace(traces, group_names=("x", "y", "z")))
    safest = calibrate(folder, traces, COVERED)
    assert found.certificate.kappa == min(p.kappa for p in groups_of(found.certificate).values())
    assert strangers.metrics["coverage"] >= evaluate(folder, traces).metrics["coverage"] - 0.2
    assert groups_of(safest.certificate) == {}


@pytest.mark.parametrize("name", ["uala", "stopping", "fixed-2", "random"])
def test_the_same_seed_gives_the_same_bundle_byte_for_byte(
    small: Dataset, tmp_path: Path, name: str
) -> None:
    for folder in ("one", "two"):
        train(small, name, ALPHA, tmp_path / folder, split=Split(4))
        calibrate(tmp_path / folder, small.traces, COVERED, split=Split(4))
    assert both_files(tmp_path / "one") == both_files(tmp_path / "two")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ccpo", "cpo", "cpo-online"])
def test_ctrl_c_saves_what_there_is_and_the_same_each_time(
    small: Dataset, tmp_path: Path, name: str
) -> None:
    for folder in ("one", "two"):
        trained = train(small, name, ALPHA, tmp_path / folder, progress=StopsAt())
        assert trained.fitted.stopped_early
    assert both_files(tmp_path / "one") == both_files(tmp_path / "two")
    bundle = load(tmp_path / "one")
    assert (bundle.kappa is None) == (name == "cpo")
    if bundle.kappa is not None:
        assert bundle.certificate is not None
        assert not bundle.certificate.promises
    assert evaluate(tmp_path / "one", small.traces).metrics["cost_usd"] > 0


def test_a_policy_that_acts_by_lot_is_drawn_until_it_is_calibrated(
    small: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    train(small, "random", ALPHA, folder)
    drawn = evaluate(folder, small.traces)
    assert drawn.metrics["set_size_leaves"] == 1.0
    assert drawn == evaluate(folder, small.traces)
    calibrate(folder, small.traces, COVERED)
    assert evaluate(folder, small.traces).metrics["coverage"] == 1.0


def test_traces_of_another_kind_are_refused(small: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    train(small, "uala", ALPHA, folder)
    config = replace(preset("hotpotqa-llama2-7b").config, rounds=3)
    short = generate(config, 100, np.random.default_rng(0))
    message = r"trained for 4 rounds of base and guide, these traces have 3 rounds of base and gui"
    with pytest.raises(InputError, match=message):
        calibrate(folder, short, COVERED)
    with pytest.raises(InputError, match=message):
        evaluate(folder, short)
    other = replace(small.traces, roles=("small", "big"))
    with pytest.raises(InputError, match="these traces have 4 rounds of small and big"):
        evaluate(folder, other)


def test_another_division_or_other_models_are_doubted(small: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    train(small, "uala", ALPHA, folder, split=Split(0))
    with pytest.raises(InputError, match="calibration questions trained the policy"):
        calibrate(folder, small.traces, COVERED, split=Split(1))
    old = load(folder)
    assert isinstance(old.policy, Saveable)
    save(folder, old.policy, origin=old.origin)  # as an older version did
    assert calibrate(folder, small.traces, COVERED, split=Split(1)).notes == (STRANGERS,)
    renamed = replace(small.traces, models=("x", "y"))
    notes = evaluate(folder, renamed).notes
    assert any("these traces have x, y" in note for note in notes)


def test_what_cannot_be_done_is_one_clear_line(small: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    with pytest.raises(InputError, match="'exit-guide' cannot run: no replies recorded"):
        train(small, "exit-guide", ALPHA, folder)
    with pytest.raises(InputError, match="'optimum' cannot be saved"):
        train(small, "optimum", ALPHA, folder)
    with pytest.raises(InputError, match="name one policy: fixed-1, fixed-2"):
        train(small, "fixed", ALPHA, folder)
    with pytest.raises(InputError, match="name one policy: none that can run here"):
        train(replace(small, generator=None), "optimum", ALPHA, folder)
    with pytest.raises(UnknownNameError, match="unknown policy"):
        train(small, "nobody", ALPHA, folder)
    with pytest.raises(TooFewTracesError, match="300 complete questions"):
        train(small, "uala", ALPHA, folder, split=Split(sizes={"train": 400}))
    assert not folder.exists()
    with pytest.raises(BundleError, match="is not a policy bundle"):
        evaluate(folder, small.traces)
    train(small, "uala", ALPHA, folder)
    with pytest.raises(InputError, match=r"cannot calibrate: .* no group"):
        calibrate(folder, small.traces, replace(COVERED, within_groups=True))

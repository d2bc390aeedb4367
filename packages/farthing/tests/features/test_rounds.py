import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import BundleError, InputError, TooFewTracesError, UnknownNameError
from farthing.features.rounds import FeatureSet, columns
from farthing.traces.arrays import FloatArray, TraceArrays

SIGNALS = ("verdict", "confidence", "uncertainty", "input_tokens", "output_tokens", "depth")
ROLES = ("base", "guide", "third")


def random_arrays(
    seed: int, n: int = 40, horizon: int = 4, n_roles: int = 2, signals: tuple[str, ...] = SIGNALS
) -> TraceArrays:
    """Random questions; about a fifth of what can be missing is."""
    rng = np.random.default_rng(seed)
    shape = (n, horizon, n_roles)
    recorded = {name: rng.integers(0, 2, shape).astype(np.float32) for name in signals}
    for name, values in recorded.items():
        if name != "verdict":
            np.add(values, rng.random(shape), out=values, casting="same_kind")
        values[rng.random(shape) < 0.2] = np.nan
    answer = rng.integers(-1, 3, shape).astype(np.int16)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)], dtype=np.str_),
        roles=ROLES[:n_roles],
        models=("",) * n_roles,
        answer=answer,
        correct=(answer == 0),
        cost_nano=rng.integers(0, 10**9, shape),
        signals=recorded,
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.full(n, horizon, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


def by_hand(arrays: TraceArrays, i: int, t: int) -> dict[str, float]:
    """The features of one round of one question, straight from their descriptions."""
    last = arrays.n_roles - 1
    seen = [int(a) for a in arrays.answer[i, : t + 1].ravel() if a >= 0]
    verdicts = arrays.signals["verdict"][i, : t + 1].ravel().tolist()
    tokens = [arrays.signals[f"{way}put_tokens"][i, : t + 1, last] for way in ("in", "out")]
    found = {f"round={s + 1}": float(s == t) for s in range(arrays.horizon)}
    for place, role in enumerate(arrays.roles):
        mine = int(arrays.answer[i, t, place])
        before = int(arrays.answer[i, t - 1, place]) if t else -1
        for name in ("confidence", "uncertainty", "depth", *(["verdict"] if place else [])):
            found[f"{name}[{role}]"] = float(arrays.signals[name][i, t, place])
        found[f"no_answer[{role}]"] = float(mine < 0)
        found[f"repeats[{role}]"] = float(mine >= 0 and mine == before)
        found[f"share[{role}]"] = seen.count(mine) / len(seen) if mine >= 0 else 0.0
    now = arrays.answer[i, t].tolist()
    found[f"tokens[{arrays.roles[last]}]"] = math.log1p(sum(float(k.sum()) for k in tokens))
    found["top_share"] = max((seen.count(a) for a in seen), default=0) / max(len(seen), 1)
    found["distinct"] = len(set(seen))
    if arrays.n_roles > 1:
        found["agree"] = float(len(set(now)) == 1 and now[0] >= 0)
    found["yes"], found["no"] = verdicts.count(1.0), verdicts.count(0.0)
    found["cost"] = math.log1p(int(arrays.cost_nano[i, : t + 1].sum()))
    return found


@pytest.mark.parametrize(("horizon", "n_roles"), [(4, 2), (1, 1), (9, 1), (3, 3), (1, 2)])
def test_every_feature_is_what_its_description_says(horizon: int, n_roles: int) -> None:
    arrays = random_arrays(horizon, horizon=horizon, n_roles=n_roles)
    found = columns(arrays, ["depth"], horizon)
    for i in range(len(arrays)):
        for t in range(horizon):
            expected = by_hand(arrays, i, t)
            assert set(expected) == set(found)
            for name, value in expected.items():
                np.testing.assert_allclose(found[name][i, t], value, rtol=1e-6, err_msg=name)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    horizon=st.integers(1, 5),
    n_roles=st.integers(1, 3),
    signals=st.sets(st.sampled_from(SIGNALS)),
    data=st.data(),
)
def test_nothing_that_happens_later_is_seen(
    seed: int, horizon: int, n_roles: int, signals: set[str], data: st.DataObject
) -> None:
    recorded = tuple(sorted(signals))
    t = data.draw(st.integers(1, horizon))
    shape = (horizon, n_roles, recorded)
    extra = [name for name in ("depth", "confidence") if name in signals]
    features = FeatureSet.fit(random_arrays(seed, 30, *shape), extra)
    now, other = random_arrays(seed + 1, 20, *shape), random_arrays(seed + 2, 20, *shape)
    past = np.arange(horizon)[:, None] < t
    changed = replace(
        now,
        answer=np.where(past, now.answer, other.answer + 7),
        correct=other.correct,
        cost_nano=np.where(past, now.cost_nano, other.cost_nano),
        signals={k: np.where(past, v, other.signals[k]) for k, v in now.signals.items()},
        recorded=np.full(20, t, dtype=np.int16),
        split=np.ones(20, dtype=np.int8),
    )
    short = replace(
        now,
        answer=now.answer[:, :t],
        correct=now.correct[:, :t],
        cost_nano=now.cost_nano[:, :t],
        made=now.made[:, :t],
        signals={k: v[:, :t] for k, v in now.signals.items()},
        recorded=np.full(20, t, dtype=np.int16),
    )
    seen = features.transform(now)[:, :t]
    assert np.array_equal(features.transform(changed)[:, :t], seen)
    assert np.array_equal(features.transform(short), seen)
    assert np.array_equal(features.raw(changed)[:, :t], features.raw(now)[:, :t])
    alone = features.transform(now.take(np.array([3])))
    assert np.array_equal(alone[:, :t], seen[3:4])


def test_training_features_have_mean_0_and_deviation_1() -> None:
    train = random_arrays(1, n=500)
    features = FeatureSet.fit(train, ["depth"])
    values = features.transform(train)
    assert values.shape == (500, 4, len(features.names))
    np.testing.assert_allclose(values.mean(axis=(0, 1)), 0, atol=1e-9)
    known = [not name.startswith("missing") and "[" not in name for name in features.names]
    np.testing.assert_allclose(values.std(axis=(0, 1))[known], 1, rtol=1e-9)


def test_the_normalisers_come_from_the_training_split_alone() -> None:
    features = FeatureSet.fit(random_arrays(1))
    dear = random_arrays(2)
    dear = replace(dear, cost_nano=dear.cost_nano * 1000)
    cost = features.names.index("cost")
    raw = np.log1p(dear.round_cost_nano.cumsum(axis=1))
    expected = (raw - features.mean[cost]) / features.scale[cost]
    np.testing.assert_allclose(features.transform(dear)[:, :, cost], np.clip(expected, -10, 10))


def test_rounds_that_were_never_recorded_do_not_count_in_training() -> None:
    train = random_arrays(1)
    recorded = np.array([1, 2, 3, 4] * 10, dtype=np.int16)
    wild = replace(
        train,
        recorded=recorded,
        cost_nano=np.where(
            np.arange(4)[:, None] < recorded[:, None, None], train.cost_nano, 10**15
        ),
    )
    assert FeatureSet.fit(wild).mean == FeatureSet.fit(replace(train, recorded=recorded)).mean


def test_gaps_are_filled_with_the_mean_and_marked() -> None:
    train = random_arrays(1)
    features = FeatureSet.fit(train)
    k = features.names.index("confidence[base]")
    gap = features.names.index("missing confidence[base]")
    missing = np.isnan(train.signals["confidence"][:, :, 0])
    assert missing.any()
    assert (features.transform(train)[:, :, k][missing] == 0).all()
    assert features.mean[k] == pytest.approx(np.nanmean(train.signals["confidence"][:, :, 0]))
    assert np.array_equal(features.raw(train)[:, :, gap], missing)


def test_without_gaps_in_training_there_is_no_mark() -> None:
    train = random_arrays(1)
    whole = {name: np.nan_to_num(values, nan=1.0) for name, values in train.signals.items()}
    features = FeatureSet.fit(replace(train, signals=whole))
    assert not any(name.startswith("missing") for name in features.names)
    k = features.names.index("confidence[base]")
    gaps = features.transform(random_arrays(1))[:, :, k][
        np.isnan(train.signals["confidence"][..., 0])
    ]
    assert (gaps == 0).all()


def test_a_feature_that_is_off_says_why() -> None:
    train = random_arrays(1, signals=("confidence",))
    train.signals["confidence"][:, :, 0] = np.nan
    train = replace(train, cost_nano=np.zeros_like(train.cost_nano))
    features = FeatureSet.fit(train)
    assert features.off == {
        "confidence[base]": "no base call records confidence",
        "uncertainty[base]": "no base call records uncertainty",
        "verdict[guide]": "no guide call records verdict",
        "uncertainty[guide]": "no guide call records uncertainty",
        "tokens[guide]": "no guide call records tokens",
        "yes": "no call records a verdict",
        "no": "no call records a verdict",
        "cost": "the same in every round of the training traces",
    }
    assert not set(features.off) & set(features.names)


@pytest.mark.parametrize("value", [3e38, 1e-40, np.inf, -np.inf, -5.0])
def test_everything_stays_finite_and_within_ten(value: float) -> None:
    train = random_arrays(1)
    for name in ("depth", "input_tokens"):
        train.signals[name][:, :, 0] = 1e-30
        train.signals[name][0, 0, :] = value
    features = FeatureSet.fit(train, ["depth"])
    wild = random_arrays(2)
    for name in ("depth", "input_tokens"):
        wild.signals[name][::2] = value
    for arrays in (train, wild):
        values = features.transform(arrays)
        assert np.isfinite(values).all()
        assert np.abs(values).max() <= 10
        assert np.isfinite(features.raw(arrays)).all()


def test_an_extra_feature_is_used_only_when_named() -> None:
    train = random_arrays(1)
    plain, named = FeatureSet.fit(train), FeatureSet.fit(train, ["depth", "depth"])
    assert not any("depth" in name for name in plain.names)
    new = set(named.names) - set(plain.names)
    assert new == {
        f"{mark}depth[{role}]" for role in ("base", "guide") for mark in ("", "missing ")
    }


def test_an_unknown_or_forbidden_extra_is_refused() -> None:
    train = random_arrays(1)
    with pytest.raises(UnknownNameError, match="unknown feature 'dept'; did you mean 'depth'"):
        FeatureSet.fit(train, ["dept"])
    graded = replace(train, signals={**train.signals, "f1": train.signals["depth"]})
    for grade in ("f1", "correct"):
        with pytest.raises(InputError, match="is a grade; a grade is never a feature"):
            FeatureSet.fit(graded, [grade])
    assert FeatureSet.fit(graded) == FeatureSet.fit(train)


def test_no_training_trace_is_refused() -> None:
    with pytest.raises(TooFewTracesError, match="there is none"):
        FeatureSet.fit(random_arrays(1, n=0))


def test_traces_of_another_shape_are_refused() -> None:
    features = FeatureSet.fit(random_arrays(1, horizon=2))
    with pytest.raises(InputError, match="fitted for 2 rounds; these traces have 3"):
        features.transform(random_arrays(1, horizon=3))
    with pytest.raises(InputError, match="roles base, guide; these traces have base:"):
        features.transform(random_arrays(1, horizon=2, n_roles=1))


def test_a_bundle_keeps_it_exactly() -> None:
    features = FeatureSet.fit(random_arrays(1), ["depth"])
    written = msgspec.json.encode(features.to_json())
    again = FeatureSet.from_json(msgspec.json.decode(written))
    assert again == features
    other = random_arrays(2)
    same: FloatArray = again.transform(other)
    assert np.array_equal(same, features.transform(other))


def test_another_version_or_a_damaged_bundle_is_refused() -> None:
    state = FeatureSet.fit(random_arrays(1)).to_json()
    with pytest.raises(BundleError, match="have version 2; this program computes version 1"):
        FeatureSet.from_json(state | {"version": 2})
    for damaged in (state | {"mean": "0"}, state | {"mean": [0.0]}):
        with pytest.raises(BundleError, match="are damaged"):
            FeatureSet.from_json(damaged)
    with pytest.raises(BundleError, match="version None"):
        FeatureSet.from_json([])

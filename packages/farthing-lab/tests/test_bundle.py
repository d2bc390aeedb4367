import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import numpy as safetensors

from farthing import plugins
from farthing.bundle.base import Bundle
from farthing.bundle.folder import load, save
from farthing.bundle.sealed import BODY, WEIGHTS
from farthing.errors import BundleError, UnknownNameError
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Saveable
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.cards import policy_class
from farthing.process.batch_replay import followed
from farthing.promises.certificate import Certificate
from farthing.promises.kinds import none, split
from farthing.traces.arrays import TraceArrays
from farthing.traces.system import Origin, origin_of
from farthing_lab.methods.baselines.llm_replies import LlmExitPolicy, LlmPolicy
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.baselines.uala import UalaPolicy
from farthing_lab.methods.ccpo.policy import NetworkPolicy
from farthing_lab.methods.stopping import StoppingPolicy

TINY = '''
import numpy as np

from farthing.methods.base import Method
from farthing.process.base import InRounds

class Tiny(InRounds):
    """A third party's policy: one table of scores, [T, L + 1]."""

    stochastic = False

    def __init__(self, table, note="", extra=None):
        self.table, self.note, self.extra = table, note, extra or {}

    def scores(self, traces):
        return np.tile(self.table, (len(traces), 1, 1))

    def to_state(self):
        return {"table": self.table}, {"note": self.note, **self.extra}

    @classmethod
    def from_state(cls, arrays, settings):
        settings = dict(settings)
        return cls(arrays["table"], settings.pop("note"), settings)

CARD = Method("tiny", "Tiny", "Scores by a table", "tiny_policy:Tiny")
'''
TABLE = np.array([[0.2, 0.3, 0.5], [0.4, 0.6, 0.0]])
ORIGIN = Origin(
    roles=("base", "guide"),
    models=("small", "large"),
    mean_cost_nano=(48_900, 1_000_000),
    horizon=2,
    fingerprint="f" * 64,
)
CERTIFICATE = split.certify(np.arange(1, 201) / 200, "0.1", fingerprint="c" * 64)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder on the import path in which a package registers the method `tiny`."""
    folder = tmp_path / "site"
    information = folder / "tiny-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / "tiny_policy.py").write_text(TINY)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[farthing.methods]\ntiny = tiny_policy:CARD\n")
    return folder


@pytest.fixture
def tiny(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(site))
    plugins._registered.cache_clear()
    yield policy_class("tiny")
    plugins._registered.cache_clear()
    sys.modules.pop("tiny_policy", None)


@pytest.fixture
def saved(tiny: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    save(folder, tiny(TABLE, "é"), origin=ORIGIN, kappa=CERTIFICATE.kappa, certificate=CERTIFICATE)
    return folder


def test_a_bundle_round_trips(saved: Path) -> None:
    found = load(saved)
    policy: Any = found.policy
    np.testing.assert_array_equal(policy.table, TABLE)
    assert policy.note == "é"
    assert found.kind == "tiny"
    assert found.origin == ORIGIN
    assert found.origin.actions == ("base", "guide", "next")
    assert found.certificate == CERTIFICATE
    assert (found.kappa, found.empty, found.features) == (CERTIFICATE.kappa, "argmax", None)
    assert sorted(path.name for path in saved.iterdir()) == [BODY, WEIGHTS]


def test_the_same_content_gives_the_same_bytes_and_saving_again_replaces(
    tiny: Any, tmp_path: Path
) -> None:
    def written(folder: Path, table: Any) -> list[bytes]:
        save(folder, tiny(table), origin=ORIGIN)
        return [path.read_bytes() for path in sorted(folder.iterdir())]

    first = written(tmp_path / "a", TABLE)
    assert written(tmp_path / "b", np.asfortranarray(TABLE)) == first
    assert written(tmp_path / "b", TABLE.astype(">f8")) == first
    assert written(tmp_path / "b", 2 * TABLE) != first
    assert written(tmp_path / "b", TABLE) == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "site"]


def test_every_single_byte_of_the_weights_matters(saved: Path) -> None:
    weights = saved / WEIGHTS
    content = weights.read_bytes()
    for index in range(len(content)):
        changed = bytearray(content)
        changed[index] ^= 1
        weights.write_bytes(changed)
        with pytest.raises(BundleError, match=r"weights.safetensors was changed"):
            load(saved)
    weights.write_bytes(content[:-1])
    with pytest.raises(BundleError, match=r"weights.safetensors was changed"):
        load(saved)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inner:
        if isinstance(item, dict | list) and item:
            yield from leaves(item, (*path, key))
        else:
            yield (*path, key)


def test_every_single_value_of_the_json_matters(saved: Path) -> None:
    body = saved / BODY
    content = body.read_text()
    for path in leaves(json.loads(content)):
        changed = json.loads(content)
        target = changed
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = "changed"
        body.write_text(json.dumps(changed))
        with pytest.raises(BundleError, match=r"bundle\.json|not a policy bundle") as raised:
            load(saved)
        assert "\n" not in str(raised.value)


def reseal(folder: Path, **changes: Any) -> None:
    """Change the JSON and recompute its hashes, as one would who knows the format."""
    body = json.loads((folder / BODY).read_bytes()) | changes
    body["sha256"] = {WEIGHTS: hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":")).encode()
    body["sha256"][BODY] = hashlib.sha256(canonical).hexdigest()
    (folder / BODY).write_text(json.dumps(body))


def test_a_resealed_bundle_loads(saved: Path) -> None:
    reseal(saved)
    assert load(saved).origin == ORIGIN


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": 4}, "format version 4, this Farthing reads 3; update Farthing"),
        ({"format_version": None}, "has format version None"),
        ({"format_version": 1}, "train and calibrate again with this version"),
        ({"format": "other"}, "bundle.json is not Farthing's"),
        ({"arrays": {}}, "holds other arrays or shapes"),
        ({"policy": {"kind": "tiny", "settings": {}}}, "cannot be rebuilt: KeyError"),
        ({"policy": []}, "cannot be rebuilt: TypeError"),
        ({"origin": {"roles": 3}}, "cannot be rebuilt: ValidationError"),
        ({"kappa": 0.01}, "the bundle acts with 0.01"),
        ({"kappa": "nan", "certificate": None}, "not a number"),
        ({"kappa": {}}, "cannot be rebuilt: TypeError"),
        ({"certificate": {"promise": {"kind": "all"}}}, "not a certificate: unknown guarantee"),
        ({"certificate": {"guarantee": "marginal"}}, "calibrate again with this version"),
        ({"empty": "often"}, "use one of argmax, allow"),
    ],
)
def test_a_resealed_lie_is_refused(saved: Path, changes: dict[str, Any], message: str) -> None:
    reseal(saved, **changes)
    with pytest.raises(BundleError, match=message) as raised:
        load(saved)
    assert "\n" not in str(raised.value)


def test_an_unknown_kind_is_named(saved: Path) -> None:
    reseal(saved, policy={"kind": "tinny", "settings": {"note": ""}})
    with pytest.raises(UnknownNameError, match="unknown method 'tinny'; did you mean 'tiny'"):
        load(saved)


def test_resealed_nan_weights_and_foreign_weights_are_refused(saved: Path) -> None:
    bad = TABLE.copy()
    bad[0, 0] = np.nan
    (saved / WEIGHTS).write_bytes(safetensors.save({"table": bad}))
    reseal(saved)
    with pytest.raises(BundleError, match="array 'table' holds NaN or inf"):
        load(saved)
    (saved / WEIGHTS).write_bytes(b"\x80\x04K\x01.")
    reseal(saved)
    with pytest.raises(BundleError, match="is not safetensors"):
        load(saved)
    (saved / WEIGHTS).unlink()
    with pytest.raises(BundleError, match=r"has no readable weights\.safetensors"):
        load(saved)


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b'{"format": NaN}', b"\xff\xfe"])
def test_damaged_json_is_refused(saved: Path, content: bytes) -> None:
    (saved / BODY).write_bytes(content)
    with pytest.raises(BundleError, match="damaged: it is not JSON"):
        load(saved)


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"format": 1}', b"null"])
def test_foreign_folders_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BundleError, match=r"it has no bundle\.json"):
        load(tmp_path)
    with pytest.raises(BundleError, match="it does not exist"):
        load(tmp_path / "absent")
    (tmp_path / BODY).write_bytes(content)
    with pytest.raises(BundleError, match="is not Farthing's"):
        load(tmp_path)


def test_saving_never_overwrites_what_is_no_bundle(tiny: Any, saved: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / BODY).write_text("{}")
    (saved / "notes.txt").write_text("mine")
    for target in (file, foreign, saved):
        with pytest.raises(BundleError, match=r"name a (new or empty )?folder"):
            save(target, tiny(TABLE), origin=ORIGIN)
    assert file.read_text() == "mine"
    assert (foreign / BODY).read_text() == "{}"
    assert (saved / "notes.txt").read_text() == "mine"
    empty = tmp_path / "empty"
    empty.mkdir()
    save(empty, tiny(TABLE), origin=ORIGIN)
    assert load(empty).kappa is None


@pytest.mark.parametrize("fails_at", ["write", "rename"])
def test_a_failed_save_leaves_the_old_bundle(
    tiny: Any, saved: Path, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    before = load(saved)
    names = {path.name for path in saved.parent.iterdir()}
    real = Path.rename

    def broken(path: Path, *arguments: Any) -> Path:
        if fails_at == "write" or path.name.endswith(".partial"):
            raise OSError("no space left on device")
        return real(path, *arguments)

    if fails_at == "write":
        monkeypatch.setattr("os.fsync", lambda _: broken(saved))
    else:
        monkeypatch.setattr(Path, "rename", broken)
    with pytest.raises(BundleError, match="no space"):
        save(saved, tiny(2 * TABLE), origin=ORIGIN)
    assert load(saved).certificate == before.certificate
    assert {path.name for path in saved.parent.iterdir()} == names


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        (np.array([np.inf]), {}, "array 'table' holds NaN or inf"),
        (np.array(["a"]), {}, "holds <U1, not numbers"),
        (np.array([None]), {}, "holds object, not numbers"),
        (TABLE, {"x": float("nan")}, "settings are not JSON"),
        (TABLE, {"x": {1, 2}}, "settings are not JSON"),
    ],
)
def test_what_cannot_be_saved_is_refused(
    tiny: Any, tmp_path: Path, table: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(BundleError, match=message):
        save(tmp_path / "b", tiny(table, "", settings), origin=ORIGIN)
    assert not (tmp_path / "b").exists()


def test_a_certificate_about_another_threshold_is_refused(tiny: Any, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="calibrate again"):
        save(tmp_path / "b", tiny(TABLE), origin=ORIGIN, kappa=0.5, certificate=CERTIFICATE)


def test_an_unregistered_policy_is_refused(tmp_path: Path) -> None:
    class Mine(RandomPolicy):
        pass

    with pytest.raises(UnknownNameError, match="unknown method"):
        save(tmp_path / "b", Mine(), origin=ORIGIN)


def test_an_infinite_threshold_round_trips(tiny: Any, tmp_path: Path) -> None:
    certificate = none.certify(float("inf"), fingerprint="")
    save(tmp_path / "b", tiny(TABLE), origin=ORIGIN, kappa=np.inf, certificate=certificate)
    assert load(tmp_path / "b").kappa == np.inf


@pytest.mark.slow
def test_loading_needs_neither_torch_nor_sklearn(saved: Path, site: Path) -> None:
    program = (
        "import sys; from farthing.bundle.folder import load; found = load(sys.argv[1]); "
        "assert found.policy.table.shape == (2, 3); "
        "assert not {'torch', 'sklearn', 'pickle5'} & set(sys.modules), 'heavy import'"
    )
    command = [sys.executable, "-c", program, str(saved)]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(site)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def traces(n: int = 6) -> TraceArrays:
    rng = np.random.default_rng(0)
    answer = rng.integers(0, 3, (n, 2, 2)).astype(np.int16)
    return TraceArrays(
        ids=np.array([str(i) for i in range(n)]),
        roles=ORIGIN.roles,
        models=ORIGIN.models,
        answer=answer,
        correct=answer == 0,
        cost_nano=rng.integers(1, 1000, (n, 2, 2)),
        signals={"verdict": rng.integers(0, 2, (n, 2, 2)).astype(np.float32)},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, 2, np.int16),
        independent=np.zeros(n, bool),
    )


def built_in() -> list[Saveable]:
    features = FeatureSet.fit(traces())
    inputs = len(features.names)
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=(inputs, 4)), rng.normal(size=(4, 3))]
    return [
        RandomPolicy(),
        FixedDepthPolicy(2),
        UalaPolicy("disagreement"),
        LlmPolicy("policy-guide"),
        LlmExitPolicy("exit-guide", "guide"),
        StoppingPolicy(features, rng.normal(size=(1, inputs)), rng.normal(size=1)),
        NetworkPolicy(features, weights, [rng.normal(size=4), rng.normal(size=3)]),
    ]


@pytest.mark.parametrize("policy", built_in(), ids=lambda policy: type(policy).__name__)
def test_built_in_policies_round_trip(tmp_path: Path, policy: Saveable) -> None:
    assert isinstance(policy, Saveable)
    save(tmp_path / "b", policy, origin=origin_of(traces(), "f"))
    found = load(tmp_path / "b")
    assert type(found.policy) is type(policy)
    if not isinstance(policy, LlmPolicy | LlmExitPolicy):
        before, after = followed(policy, traces()), followed(found.policy, traces())
        np.testing.assert_array_equal(after.scores, before.scores)
    save(tmp_path / "again", saveable(found), origin=found.origin)
    for name in (BODY, WEIGHTS):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def saveable(found: Bundle) -> Saveable:
    assert isinstance(found.policy, Saveable)
    return found.policy


def test_mean_prices_are_over_the_calls_that_were_made_and_round_up() -> None:
    some = traces(3)
    some.cost_nano[:] = 0
    some.cost_nano[:, :, 0] = [[10, 0], [11, 0], [0, 0]]
    assert origin_of(some, "f").mean_cost_nano == (11, 0)


def test_the_certificate_in_a_bundle_is_the_record(saved: Path) -> None:
    body = json.loads((saved / BODY).read_bytes())
    assert Certificate.from_json(body["certificate"]) == CERTIFICATE


OLD = """{"actions": ["base", "guide", "next"], "arrays": {}, "certificate": {"alpha": "0.1",
 "fingerprint": "cccccccc", "given": "all", "guarantee": "marginal", "k": 20, "kappa": 0.1,
 "n": 200}, "empty": "argmax", "farthing_version": "0.1.0", "format": "farthing policy bundle",
 "format_version": 1, "kappa": 0.1, "origin": {"fingerprint": "aaaaaaaa", "horizon": 3,
 "independent": null, "mean_cost_nano": [1, 2], "models": ["s", "l"],
 "roles": ["base", "guide"], "signals": null}, "policy": {"kind": "random", "settings": {}},
 "questions": {}, "sha256": {"bundle.json": "4f4a", "weights.safetensors": "9bbc"}}"""


def test_a_bundle_of_the_old_format_is_refused_with_the_remedy(saved: Path) -> None:
    (saved / BODY).write_text(OLD)
    with pytest.raises(BundleError, match="train and calibrate again with this version"):
        load(saved)

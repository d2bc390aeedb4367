"""Versions of a bundle: put in place whole, kept, put back to the byte, whatever is killed when."""

import json
import os
import shutil
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farthing.bundle.base import Bundle
from farthing.bundle.folder import load, save
from farthing.bundle.versions import (
    Change,
    History,
    deploy,
    digest_of,
    folder_of,
    put_back,
    read_history,
    versions_of,
)
from farthing.errors import BundleError
from farthing.features.rounds import FeatureSet
from farthing.traces.system import origin_of
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.stopping import StoppingPolicy

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
TRACES = generate(preset("hotpotqa-llama2-7b").config, 50, np.random.default_rng(0))
ORIGIN = origin_of(TRACES, "sha256:0")


def made(folder: Path, seed: int) -> Path:
    features, rng = FeatureSet.fit(TRACES), np.random.default_rng(seed)
    weights = rng.normal(size=(1, len(features.names)))
    save(folder, StoppingPolicy(features, weights, rng.normal(size=1)), origin=ORIGIN)
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return made(tmp_path / "bundles" / "support", 1)


def other(tmp_path: Path, seed: int) -> Bundle:
    return load(made(tmp_path / f"of-{seed}", seed))


def put(place: Path, bundle: Bundle, why: str = "audits") -> History:
    change = Change(at=NOW, how="recalibrated", by="ann", why=why)
    return deploy(place, bundle, change, instead_of=digest_of(place))


def back(place: Path, number: int | None = None) -> History:
    to = read_history(place).before if number is None else number
    assert to is not None
    return put_back(place, to, Change(at=NOW, how="rolled back", by="bob"))


def content(folder: Path) -> dict[str, bytes]:
    files = (one for one in folder.rglob("*") if one.is_file())
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in files}


def test_a_bundle_alone_is_version_1_and_nothing_is_written(place: Path) -> None:
    history = read_history(place)
    assert (history.present, history.before) == (1, None)
    assert [one.how for one in history.changes] == ["loaded"]
    assert not versions_of(place).exists()


def test_what_is_put_back_is_the_same_to_the_byte(place: Path, tmp_path: Path) -> None:
    first, when = content(place), place.stat().st_mtime_ns
    put(place, other(tmp_path, 2))
    second = content(place)
    assert second != first
    assert content(versions_of(place) / "0001") == first
    back(place)
    assert content(place) == first
    assert place.stat().st_mtime_ns == when
    assert content(versions_of(place) / "0002") == second
    back(place, 2)
    assert content(place) == second


def test_rolling_back_twice_goes_one_further_back_and_new_ones_return_to_where_they_came_from(
    place: Path, tmp_path: Path
) -> None:
    for seed in (2, 3):
        put(place, other(tmp_path, seed))
    assert (back(place).present, back(place).present) == (2, 1)
    assert read_history(place).before is None
    history = put(place, other(tmp_path, 2), "again")  # the same content as version 2
    assert (history.present, history.before) == (4, 1)
    assert back(place).present == 1
    changes = [(one.version, one.how, one.by) for one in read_history(place).changes]
    assert changes == [
        (1, "loaded", None),
        *[(number, "recalibrated", "ann") for number in (2, 3)],
        *[(number, "rolled back", "bob") for number in (2, 1)],
        (4, "recalibrated", "ann"),
        (1, "rolled back", "bob"),
    ]
    assert next(one for one in history.changes if one.version == 4).why == "again"


def test_a_bundle_that_somebody_else_put_there_is_a_version_of_its_own(
    place: Path, tmp_path: Path
) -> None:
    put(place, other(tmp_path, 2))
    shutil.rmtree(place)
    made(place, 3)
    history = read_history(place)
    assert (history.present, history.before) == (3, 1)
    put(place, other(tmp_path, 2))
    assert back(place).present == 3
    assert back(place).present == 1
    with pytest.raises(BundleError, match="changed or deleted"):
        back(place, 2)


def test_a_bundle_that_was_deleted_can_be_replaced_by_one_that_was_kept(
    place: Path, tmp_path: Path
) -> None:
    put(place, other(tmp_path, 2))
    first = content(versions_of(place) / "0001")
    shutil.rmtree(place)
    assert back(place).present == 1
    assert content(place) == first
    assert put(place, other(tmp_path, 3)).present == 3


def test_what_cannot_be_done_is_said_and_changes_nothing(place: Path, tmp_path: Path) -> None:
    before = digest_of(place)
    change = Change(at=NOW, how="recalibrated")
    with pytest.raises(BundleError, match="is that bundle already"):
        put(place, load(place))
    with pytest.raises(BundleError, match="replaced meanwhile"):
        deploy(place, other(tmp_path, 2), change, instead_of="another")
    with pytest.raises(BundleError, match="decides already"):
        back(place, 1)
    with pytest.raises(BundleError, match="no version 9; there are 1"):
        back(place, 9)
    put(place, other(tmp_path, 2))
    (versions_of(place) / "0001" / "bundle.json").write_text("{}")
    with pytest.raises(BundleError, match="changed or deleted"):
        back(place)
    (versions_of(place) / "versions.json").write_text("{")
    with pytest.raises(BundleError, match="is damaged"):
        read_history(place)
    (versions_of(place) / "versions.json").unlink()
    with pytest.raises(BundleError, match="is missing"):
        read_history(place)
    with pytest.raises(BundleError, match="no bundle here yet"):
        read_history(tmp_path / "none")
    assert before != digest_of(place)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["deploy", "first deploy", "back"])
def test_a_kill_at_any_step_leaves_a_whole_bundle_or_one_that_is_restored(
    place: Path, tmp_path: Path, what: str
) -> None:
    first = digest_of(place)
    if what != "first deploy":
        put(place, other(tmp_path, 2))
    shutil.copytree(place.parent, tmp_path / "x" / "bundles")
    made(tmp_path / "x" / "new", 3)
    old, new = digest_of(place), digest_of(tmp_path / "x" / "new")
    script = Path(__file__).with_name("killed.py")
    command = [sys.executable, str(script), what.removeprefix("first "), str(tmp_path / "x")]
    alone = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env=alone)
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    wanted = first if what == "back" else new
    assert {one["code"] for one in found[:-1]} == {9}
    assert found[-1]["code"] == 0
    assert found[-1]["at once"] == wanted
    assert len(found) > (4 if what == "back" else 8)
    for one in found:
        assert one["at once"] in {old, wanted, None}
        assert one["after"] in {old, wanted}
        assert one["known"][str(one["present"])] == one["after"]
        kept = {int(number): digest for number, digest in one["folders"].items()}
        known = {int(number): digest for number, digest in one["known"].items()}
        assert kept == {n: d for n, d in known.items() if n != one["present"]}
        assert [name for name in one["left"] if "partial" in name] == []
    none = [one for one in found if one["at once"] is None]
    assert len(none) == 1, "there is one moment between two renames"
    assert [one["after"] == wanted for one in found] == sorted(
        one["after"] == wanted for one in found
    )


def test_two_at_once_wait_for_each_other(place: Path, tmp_path: Path) -> None:
    bundles = [other(tmp_path, seed) for seed in range(2, 8)]
    refused = []

    def go(bundle: Bundle) -> None:
        while True:
            try:
                put(place, bundle)
            except BundleError as error:
                refused.append(str(error))
                continue
            return

    threads = [threading.Thread(target=go, args=(one,)) for one in bundles]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    history = read_history(place)
    assert [one.number for one in history.versions] == [1, 2, 3, 4, 5, 6, 7]
    for version in history.versions:
        assert digest_of(folder_of(place, history, version.number)) == version.digest


@pytest.mark.slow
def test_who_reads_while_versions_change_reads_a_whole_one(place: Path, tmp_path: Path) -> None:
    policies = {1: content(place)}
    put(place, other(tmp_path, 2))
    policies[2] = content(place)
    stop, read, failed = threading.Event(), [0], []

    def look() -> None:
        while not stop.is_set():
            try:
                bundle = load(place)
            except BundleError as error:
                if "does not exist" not in str(error):
                    failed.append(str(error))
                continue
            read[0] += 1
            if bundle.origin != ORIGIN:
                failed.append("mixed")

    looking = threading.Thread(target=look)
    looking.start()
    for turn in range(100):
        back(place, 1 + turn % 2)
    stop.set()
    looking.join()
    assert failed == []
    assert read[0] > 20

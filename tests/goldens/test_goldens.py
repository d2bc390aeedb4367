"""What users kept before the split into three packages reads, decides and answers as it did.

The goldens were written by `write.py` with the code of before; see there. A test that fails says
that a bundle, a store, a file of settings or a client of today would meet another Farthing.
"""

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from importlib.metadata import entry_points
from math import isclose
from pathlib import Path
from typing import Any

import kept
import msgspec
import pytest
from exchanges import EXCHANGES, transcripts

from farthing.bundle import folder as bundles
from farthing.bundle.versions import digest_of
from farthing.promises.certificate import GROUP, Certificate
from farthing.runtime.job import read_job
from farthing.traces import jsonl
from farthing.traces.files import read_records
from farthing.traces.store import Store
from farthing_gateway.config import read_config

HERE = Path(__file__).parent
BEFORE = "0.1.0"
"""The version that wrote the bundles."""


def golden(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


CERTIFICATES, BUNDLES, LOGS = map(golden, ("certificates.json", "bundles.json", "logs.json"))
SETTINGS, HTTP = map(golden, ("settings.json", "http.json"))


def text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def alike(now: Any, before: Any) -> bool:
    """Compare JSON; another processor may round the last digits of a figure."""
    if isinstance(before, dict) and isinstance(now, dict):
        return now.keys() == before.keys() and all(alike(now[k], v) for k, v in before.items())
    if isinstance(before, list) and isinstance(now, list):
        return len(now) == len(before) and all(map(alike, now, before))
    if isinstance(before, float) and isinstance(now, float):
        return isclose(now, before, rel_tol=1e-9)
    return type(now) is type(before) and bool(now == before)


def lacks(now: Any, before: Any, at: str = "") -> list[str]:
    """Return what settings no longer say as before; what they say besides is new."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            line
            for name, value in before.items()
            for line in (
                lacks(now[name], value, f"{at}.{name}") if name in now else [f"{at}.{name} is gone"]
            )
        ]
    return [] if now == before else [f"{at} is {now!r} and was {before!r}"]


def test_there_is_a_certificate_and_a_bundle_of_each_kind() -> None:
    kinds = {body["promise"]["kind"] for body in CERTIFICATES.values()}
    assert kinds == {point.name for point in entry_points(group=GROUP)}
    assert kinds == {facts["promise"] for facts in BUNDLES.values()} - {None}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_reads_is_proved_again_and_keeps_its_bytes(name: str) -> None:
    before = CERTIFICATES[name]
    found = Certificate.from_json(before)
    assert text(found.to_json()) == text(before)
    assert found.verify(kept.evidence_of(name), kept.MARK) == []
    again = json.loads(text(kept.certified(name).to_json()))
    assert alike(again, before)


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_loads_decides_and_saves_as_before(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, folder = BUNDLES[name], HERE / "bundles" / name
    bundle = bundles.load(folder)
    body = json.loads((folder / "bundle.json").read_text())
    assert (bundle.certificate and bundle.certificate.to_json()) == body["certificate"]
    assert bundle.farthing_version == BEFORE
    facts = json.loads(text(kept.bundle_facts(before["log"], folder, bundle)))
    assert alike(facts, before)
    monkeypatch.setattr(bundles, "__version__", BEFORE)
    bundles.write(tmp_path / "again", bundle)
    written = {one.relative_to(folder) for one in folder.rglob("*") if one.is_file()}
    assert written == {
        one.relative_to(tmp_path / "again")
        for one in (tmp_path / "again").rglob("*")
        if one.is_file()
    }
    for one in written:
        assert (tmp_path / "again" / one).read_bytes() == (folder / one).read_bytes()
    assert digest_of(tmp_path / "again") == before["digest"]


@pytest.mark.parametrize("log", kept.SIZES)
def test_a_log_has_the_same_fingerprint(log: str) -> None:
    found = kept.log_facts(HERE / f"{log}-new.jsonl.gz")
    found.pop("questions")
    assert found == LOGS[log]


def test_a_log_of_every_field_reads_and_is_written_as_before(tmp_path: Path) -> None:
    file = HERE / "records.jsonl"
    assert kept.log_facts(file) == LOGS["jsonl"]
    jsonl.write_traces(tmp_path / "again.jsonl", read_records(file))
    assert (tmp_path / "again.jsonl").read_bytes() == file.read_bytes()


def dumped(place: Path) -> list[str]:
    with closing(sqlite3.connect(place)) as connection:
        numbers = [
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("user_version", "application_id")
        ]
        return [*map(str, numbers), *connection.iterdump()]


def test_a_store_reads_as_before_and_is_written_further(tmp_path: Path) -> None:
    place = tmp_path / "records.db"
    place.write_bytes(gzip.decompress((HERE / "records.db.gz").read_bytes()))
    before = dumped(place)
    assert kept.log_facts(place) == LOGS["store"]
    with Store.open(place) as store:
        assert store.count() == len(LOGS["store"]["questions"])
    assert dumped(place) == before
    with Store.open(place) as store:
        more = [
            msgspec.structs.replace(one, id=f"{one.id} again")
            for one in read_records(HERE / "records.jsonl")
        ]
        assert store.add(more, "today") == len(more)
    questions = msgspec.to_builtins(read_records(place))
    assert questions[: len(more)] == LOGS["store"]["questions"]
    assert len(questions) == 2 * len(more)


def test_a_store_of_today_is_one_of_before(tmp_path: Path) -> None:
    (tmp_path / "before.db").write_bytes(gzip.decompress((HERE / "records.db.gz").read_bytes()))
    with Store.open(tmp_path / "today.db") as store:
        store.add(read_records(HERE / "records.jsonl"), "golden")
    with closing(sqlite3.connect(tmp_path / "today.db")) as connection, connection:
        connection.execute("UPDATE imports SET imported_at = '2026-01-01T00:00:00Z'")
    assert dumped(tmp_path / "today.db") == dumped(tmp_path / "before.db")


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_read_as_before(name: str) -> None:
    file = HERE / name
    found = (
        kept.plain(read_config(file))
        if name.startswith("serve")
        else kept.job_facts(read_job(file))
    )
    assert lacks(kept.without(HERE)(found), SETTINGS[name], name) == []


def test_every_file_of_settings_is_compared() -> None:
    assert set(SETTINGS) == {file.name for file in HERE.glob("*.toml")}


def test_a_gateway_answers_as_before(tmp_path: Path) -> None:
    shutil.copytree(HERE / "bundles" / "agreement", tmp_path / "bundle")
    found = transcripts(tmp_path, tmp_path / "bundle")
    assert list(found) == list(HTTP) == list(EXCHANGES)
    assert {name: one for name, one in found.items() if one != HTTP[name]} == {}

"""Reading a store changes nothing: not the file, not its folder, whoever wrote it and however."""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from farthing.errors import StoreError
from farthing.traces.base import Call, Trace
from farthing.traces.store import APPLICATION_ID, Store, to_read

Seen = dict[str, tuple[str, int, int]]


def trace(name: str) -> Trace:
    calls = [Call(round=1, role="base", answer="4", correct=True, cost_usd=1e-5)]
    return Trace(id=name, question="2 + 2?", gold=["4"], calls=calls)


def seen(folder: Path) -> Seen:
    """Return what is in a folder: the name, content, time and mode of every file."""
    return {
        file.name: (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
            file.stat().st_mode,
        )
        for file in folder.iterdir()
    }


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    before, entered = seen(folder), folder.stat().st_mtime_ns
    yield
    assert seen(folder) == before
    assert folder.stat().st_mtime_ns == entered


def read(path: Path) -> list[str]:
    with Store.read(path) as store:
        return [found.id for found in store.traces()]


def written(path: Path) -> Path:
    with Store.open(path) as store:
        store.add([trace("q1"), trace("q2")], "file")
    return path


def abandoned(path: Path) -> Path:
    """Leave a store behind as a process does that dies: the last commit is in the WAL alone."""
    written(path)
    with Store.open(path) as store:
        store.add([trace("q3")], "later")
        dead = path.with_name("dead")
        dead.mkdir()
        for suffix in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{suffix}", dead / f"{path.name}{suffix}")
    return dead / path.name


def of_version_1(path: Path) -> Path:
    script = resources.files("farthing.traces") / "migrations" / "0001_traces.sql"
    connection = sqlite3.connect(path)
    connection.executescript(script.read_text())
    connection.executescript(
        f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;"
        "INSERT INTO traces VALUES (1, 'old', 'text', NULL, NULL, 'Who?', '[\"A\"]', 1, 0);"
        "INSERT INTO calls (trace, position, round, role, answer, correct, cost_nano, cost_usd)"
        "  VALUES (1, 0, 1, 'base', 'A', 1, 48900, 4.89e-05);"
    )
    connection.close()
    return path


def test_a_store_is_read_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "a b?#%41.db")
    with unchanged(tmp_path):
        assert read(path) == ["q1", "q2"]


def test_what_is_in_the_wal_alone_is_read_and_stays_there(tmp_path: Path) -> None:
    path = abandoned(tmp_path / "a.db")
    assert path.with_name("a.db-wal").stat().st_size
    with unchanged(path.parent):
        assert read(path) == ["q1", "q2", "q3"]


def test_a_store_is_read_while_another_process_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.open(path) as writer:
        writer.add([trace("q1")], "file")
        with unchanged(tmp_path):
            assert read(path) == ["q1"]
        writer.add([trace("q2")], "more")
        with unchanged(tmp_path):
            assert read(path) == ["q1", "q2"]


def test_an_older_store_is_read_and_not_migrated(tmp_path: Path) -> None:
    path = of_version_1(tmp_path / "old.db")
    with unchanged(tmp_path):
        assert read(path) == ["old"]
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (1,)


def test_an_unfinished_change_of_an_older_store_is_not_read(tmp_path: Path) -> None:
    path = of_version_1(tmp_path / "old.db")
    dead = tmp_path / "dead"
    dead.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("PRAGMA cache_size = 1; BEGIN")
    row = "INSERT INTO traces VALUES (?, ?, 'text', NULL, NULL, ?, '[]', 1, 0)"
    connection.executemany(row, [(k, f"half {k}", "x" * 4_000) for k in range(2, 60)])
    for file in ("old.db", "old.db-journal"):
        shutil.copy(tmp_path / file, dead / file)
    connection.close()
    with unchanged(dead):
        assert read(dead / "old.db") == ["old"]


@pytest.fixture
def closed() -> Iterator[Path]:
    """Return a folder that cannot be written: as somebody else, where we may write everywhere."""
    with TemporaryDirectory() as folder:
        closed = Path(folder) / "closed"
        closed.mkdir()
        Path(folder).chmod(0o755)
        yield closed
        closed.chmod(0o755)


@contextmanager
def nobody() -> Iterator[None]:
    ours = os.geteuid()
    if ours == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(ours)


def test_a_store_in_a_folder_that_cannot_be_written(closed: Path) -> None:
    stores = {written(closed / "a.db"): ["q1", "q2"], of_version_1(closed / "old.db"): ["old"]}
    dead = abandoned(closed / "b.db").parent
    for path in (*stores, *dead.iterdir()):
        path.chmod(0o444)
    for folder in (dead, closed):
        folder.chmod(0o555)
    with unchanged(dead), nobody():
        assert not os.access(closed, os.W_OK, effective_ids=True)
        assert {path: read(path) for path in stores} == stores
        assert read(dead / "b.db") == ["q1", "q2", "q3"]
    dead.chmod(0o755)


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "no such store"), (b"no database" * 99, "not a database"), (b"", None)],
)
def test_what_is_no_store_stays_as_it_is(
    tmp_path: Path, content: bytes | None, says: str | None
) -> None:
    path = tmp_path / "a.db"
    if content is not None:
        path.write_bytes(content)
    with unchanged(tmp_path):
        if says is None:
            assert read(path) == []
            return
        with pytest.raises(StoreError, match=says) as refused:
            read(path)
    assert str(path) in str(refused.value)


def test_a_store_that_changes_meanwhile_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.db")

    def read_and_write() -> None:
        with Store.read(path) as reader, Store.open(path) as writer:
            assert reader.count() == 2
            writer.add([trace("q3")], "more")

    with pytest.raises(StoreError, match="written while it was read; run this again"):
        read_and_write()


def test_a_copy_of_a_moment_is_taken_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint in the middle of a copy would mix two moments."""
    path = abandoned(tmp_path / "a.db")
    copied = shutil.copyfile
    turns: list[Path] = []

    def disturbed(source: Path, target: Path) -> Path:
        turns.append(source)
        if len(turns) <= disturbances:
            os.utime(path, ns=(len(turns), len(turns)))
        return copied(source, target)

    monkeypatch.setattr("shutil.copyfile", disturbed)
    disturbances = 3
    with to_read(path) as connection:
        assert connection.execute("SELECT count(*) FROM traces").fetchone() == (3,)
    assert len(turns) == 6
    disturbances = 10**6
    with pytest.raises(StoreError, match="is being written; run this again"), to_read(path):
        pass

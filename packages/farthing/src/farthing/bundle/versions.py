"""The versions of a bundle: which one decides, and how another is put in its place.

    bundles/
    ├── support/               the version that decides
    └── support.versions/
        ├── versions.json      every version and every change of them: what it says counts
        └── 0001/              a version that decided before

A change is one replacement of `versions.json`; then folders are renamed to where it says. A process
that dies in between leaves a whole bundle at its place, or none for as long as nobody looks: the
next command finishes what was begun. Two commands wait for each other.
"""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.errors import BundleError

INDEX, LOCK = "versions.json", ".lock"
How = Literal["loaded", "recalibrated", "rolled back"]
"""How a version came to decide: it was found at its place, made of live traffic, or put back."""
_FOLDER = re.compile(r"\d{4,}")
_UNFINISHED = re.compile(r"\.(\d{4,}|versions\.json)\..*")


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Who made a version decide, when and why."""

    at: datetime
    how: How
    by: str | None = None
    """A user of the machine; None: nobody knows."""
    why: str = ""
    version: int = 0
    """Which version decides from then on."""


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that decides, or did."""

    number: int
    """From 1, in the order in which they were made."""
    before: int | None
    """The version that it took the place of, to which a roll-back returns; None: it was the first.
    """
    digest: str
    """SHA-256 of its files; empty where somebody deleted them."""


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of one bundle."""

    present: int
    """The number of the version that decides."""
    versions: tuple[Version, ...]
    changes: tuple[Change, ...]
    """The oldest first."""

    def version(self, number: int) -> Version | None:
        """Return a version; None where there is none of that number."""
        return next((one for one in self.versions if one.number == number), None)

    @property
    def before(self) -> int | None:
        """The version that a roll-back returns to; None where there is none."""
        present = self.version(self.present)
        return None if present is None else present.before

    def last_change(self, number: int) -> Change | None:
        """Return how a version came to decide the last time."""
        own = [one for one in self.changes if one.version == number]
        return own[-1] if own else None


def versions_of(place: Path) -> Path:
    """Return the folder of the versions that a bundle's place has.

    >>> print(versions_of(Path("bundles/support")))
    bundles/support.versions
    """
    return place.with_name(f"{place.name}.versions")


def folder_of(place: Path, history: History, number: int) -> Path:
    """Return where a version is: at the bundle's place, or among those kept."""
    return place if number == history.present else _kept(place, number)


def read_history(place: Path) -> History:
    """Return the versions of a bundle; what a process that died had begun is finished first."""
    if not versions_of(place).is_dir():
        return _only(place)
    with _alone(place):
        return _settled(place)


def deploy(place: Path, bundle: Bundle, change: Change, *, instead_of: str) -> History:
    """Put a new bundle in the place of the one that decides, which is kept.

    Args:
        place: the bundle's folder.
        bundle: what is to decide.
        change: who does it and why; its version is filled in.
        instead_of: the digest of the bundle that it was made from.
    """
    with _alone(place):
        history = _settled(place)
        if _digest(place) != instead_of:
            raise BundleError(f"{place}: was replaced meanwhile, and is left as it is; begin again")
        _write(place, history)
        number = 1 + max(one.number for one in history.versions)
        made = _kept(place, number)
        bundles.write(made, bundle)
        if (digest := _digest(made)) == instead_of:
            shutil.rmtree(made)
            raise BundleError(f"{place}: is that bundle already; nothing is changed")
        new = Version(number=number, before=history.present, digest=digest)
        history = replace(history, versions=(*history.versions, new))
        return _put(place, history, number, change)


def put_back(place: Path, number: int, change: Change) -> History:
    """Put a version that decided before back in its place; the one that decides is kept."""
    with _alone(place):
        history = _settled(place)
        if number == history.present:
            raise BundleError(f"{place}: version {number} decides already")
        version = history.version(number)
        if version is None:
            known = ", ".join(str(one.number) for one in history.versions)
            raise BundleError(f"{place}: there is no version {number}; there are {known}")
        if not version.digest or _digest(_kept(place, number)) != version.digest:
            raise BundleError(f"{_kept(place, number)}: was changed or deleted; name another")
        return _put(place, history, number, change)


def digest_of(place: Path) -> str:
    """Return the SHA-256 of a bundle's files."""
    if not place.is_dir():
        raise BundleError(f"{place}: there is no bundle here yet")
    return _digest(place)


def _put(place: Path, history: History, number: int, change: Change) -> History:
    changes = (*history.changes, replace(change, version=number))
    history = replace(history, present=number, changes=changes)
    _write(place, history)  # from here on it is so, whatever happens to this process
    _move(place, history)
    return history


def _settled(place: Path) -> History:
    """Finish what was begun, and take notice of a bundle that somebody put at the place."""
    index = versions_of(place) / INDEX
    if not index.is_file():
        if any(_FOLDER.fullmatch(one.name) for one in index.parent.iterdir()):
            raise BundleError(f"{index}: is missing; move the folders beside it elsewhere")
        _unfinished(index).unlink(missing_ok=True)
        return _only(place)
    try:
        history = msgspec.json.decode(index.read_bytes(), type=History)
    except msgspec.MsgspecError as error:
        raise BundleError(f"{index}: is damaged ({error}); move its folder elsewhere") from None
    _sweep(place, history)
    _move(place, history)
    return _noticed(place, history)


def _only(place: Path) -> History:
    digest = digest_of(place)
    first = Version(number=1, before=None, digest=digest)
    return History(present=1, versions=(first,), changes=(_found(place, 1),))


def _noticed(place: Path, history: History) -> History:
    """Number a bundle that came to its place by other hands; the one that was there is lost."""
    there = _digest(place) if place.is_dir() else ""
    if any(one.digest == there for one in history.versions if one.number == history.present):
        return history
    lost = tuple(
        replace(one, digest="") if one.number == history.present else one
        for one in history.versions
    )
    history = replace(history, versions=lost)
    if not there:
        return history
    number = 1 + max(one.number for one in lost)
    new = Version(number=number, before=history.before, digest=there)
    changes = (*history.changes, _found(place, number))
    return replace(history, present=number, versions=(*lost, new), changes=changes)


def _found(place: Path, number: int) -> Change:
    written = max(one.stat().st_mtime for one in place.iterdir())
    at = datetime.fromtimestamp(written, UTC)
    return Change(at=at, how="loaded", why="found at its place", version=number)


def _move(place: Path, history: History) -> None:
    """Bring folders to where the history says that they are."""
    coming = _kept(place, history.present)
    if not coming.is_dir():
        return
    if place.exists():
        known = [one.number for one in history.versions if one.digest]
        gone = [number for number in known if not _kept(place, number).exists()]
        if len(gone) != 1:
            raise BundleError(f"{versions_of(place)}: is damaged; move it elsewhere")
        place.rename(_kept(place, gone[0]))
    coming.rename(place)
    _sync(place.parent)


def _sweep(place: Path, history: History) -> None:
    for one in versions_of(place).iterdir():
        unknown = _FOLDER.fullmatch(one.name) and history.version(int(one.name)) is None
        if unknown or _UNFINISHED.fullmatch(one.name):
            shutil.rmtree(one) if one.is_dir() else one.unlink()


def _write(place: Path, history: History) -> None:
    index = versions_of(place) / INDEX
    unfinished = _unfinished(index)
    with unfinished.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(history), indent=1) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(index)
    _sync(index.parent)


def _unfinished(index: Path) -> Path:
    return index.with_name(f".{index.name}.partial")


def _kept(place: Path, number: int) -> Path:
    return versions_of(place) / f"{number:04}"


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def _sync(folder: Path) -> None:
    """Make renames last a power failure."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Hold the lock of a bundle's versions; a process that ends gives it back."""
    folder = versions_of(place)
    try:
        folder.mkdir(exist_ok=True)
        with (folder / LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise BundleError(
            f"{folder}: cannot be written ({error.strerror or error}); check its rights"
        ) from error

"""A running gateway is asked to read its configuration again, and says what came of it.

The process that serves holds a lock on its pid file for as long as it lives: whoever asks learns
from the lock who holds it, so that a file that was left behind leads to no other process. What came
of reading is in a file beside it.
"""

import fcntl
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from farthing.errors import InputError

PATIENCE_S = 300.0
"""How long whoever asks waits for what comes of it."""
_LOOK_S = 0.05
_LOCK = struct.Struct("hhqqi0q")
"""`struct flock` of Linux: type, whence, start, length, pid."""


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How reading went: the last time, and whether it goes on."""

    begun: int = 0
    """How often it was begun."""
    ended: int = 0
    """How often it was ended; what follows is of that time."""
    taken: bool = True
    says: str = ""
    """What is served, or why not."""
    notes: tuple[str, ...] = ()
    """What to know of a configuration that was taken, a line each."""


@dataclass
class Outcomes:
    """Writes what comes of reading; of a gateway without a pid file nobody can ask for it."""

    pid_file: Path | None
    last: Outcome = field(default_factory=Outcome)

    def begin(self) -> None:
        """Say that reading begins."""
        self._write(msgspec.structs.replace(self.last, begun=self.last.begun + 1))

    def end(self, says: str, notes: tuple[str, ...] = (), *, taken: bool) -> None:
        """Say what came of it."""
        number = self.last.begun
        self._write(Outcome(begun=number, ended=number, taken=taken, says=says, notes=notes))

    def _write(self, outcome: Outcome) -> None:
        self.last = outcome
        if self.pid_file is None:
            return
        new = self.pid_file.with_name(f"{self.pid_file.name}.new")
        with suppress(OSError):  # a full disk keeps nobody from serving
            new.write_bytes(msgspec.json.encode(outcome))
            new.replace(_beside(self.pid_file))


@contextmanager
def found_at(pid_file: Path | None) -> Iterator[tuple[Outcomes, str | None]]:
    """Let this process be found while the block runs.

    Yields:
        What says how reading went, and why this process cannot be found where it cannot.
    """
    if pid_file is None:
        yield Outcomes(None), None
        return
    try:
        file = _locked(pid_file)
    except OSError as error:
        why = (
            "another gateway holds it"
            if isinstance(error, BlockingIOError | PermissionError) and pid_file.exists()
            else (error.strerror or str(error)).lower()
        )
        yield (
            Outcomes(None),
            f"{pid_file}: {why}, so that `farthing gateway reload` finds not this one",
        )
        return
    outcomes = Outcomes(pid_file)
    try:
        yield outcomes, None
    finally:
        for one in (_beside(pid_file), pid_file):
            one.unlink(missing_ok=True)
        os.close(file)


def ask_to_reload(pid_file: Path) -> Outcome:
    """Have the gateway of a pid file read its configuration again; return what came of it.

    Raises:
        InputError: no gateway has that file, or it may not be asked, or did not say in time.
    """
    pid = _holder(pid_file)
    number = _read(pid_file).begun + 1
    try:
        os.kill(pid, signal.SIGHUP)
    except PermissionError:
        raise InputError(f"{pid_file}: process {pid} is another user's; run it as that") from None
    until = time.monotonic() + PATIENCE_S
    while (found := _read(pid_file)).ended < number:
        _holder(pid_file)
        if time.monotonic() > until:
            raise InputError(f"process {pid} did not say what came of it in {PATIENCE_S:g} s")
        time.sleep(_LOOK_S)
    return found


def _locked(pid_file: Path) -> int:
    """Return the open pid file of this process, locked until it is closed."""
    while True:
        file = os.open(pid_file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), pid_file.stat()):
                    os.truncate(file, 0)
                    os.write(file, f"{os.getpid()}\n".encode())
                    return file
        except OSError:
            os.close(file)
            raise
        os.close(file)  # another gateway removed it as it ended


def _holder(pid_file: Path) -> int:
    nobody = InputError(f"{pid_file}: no gateway serves with this pid file; `farthing serve` does")
    try:
        file = os.open(pid_file, os.O_RDONLY)
    except FileNotFoundError:
        raise nobody from None
    try:
        if sys.platform != "linux":
            raise InputError(f"only Linux says who holds {pid_file}; send SIGHUP to that process")
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_, pid = _LOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    finally:
        os.close(file)
    if kind == fcntl.F_UNLCK:
        raise nobody
    if pid <= 0:
        raise InputError(f"{pid_file}: its gateway runs in another container; run this in that")
    return int(pid)


def _read(pid_file: Path) -> Outcome:
    try:
        return msgspec.json.decode(_beside(pid_file).read_bytes(), type=Outcome)
    except FileNotFoundError:
        return Outcome()
    except msgspec.MsgspecError as error:
        raise InputError(f"{_beside(pid_file)}: no gateway of this version wrote it") from error


def _beside(pid_file: Path) -> Path:
    return pid_file.with_name(f"{pid_file.name}.reload")

"""Whether a result could be written, and what to doubt in what was read."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from farthing.cli.console import remark
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.experiments.partly_graded import Graded
    from farthing.traces.arrays import TraceArrays


def check_folder(path: Path) -> None:
    """Refuse a folder that could not be written to, before hours of work are lost on it.

    Raises:
        InputError: it, or the nearest folder above it that exists, is a file or is not writable.
    """
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    try:
        with TemporaryDirectory(dir=nearest):
            pass
    except OSError:
        problem = f"{nearest} is no folder that can be written to; name another"
        raise InputError(f"{path}: {problem}") from None


def doubt_costs(traces: "TraceArrays") -> None:
    """Say whose calls have no cost: they look free to every policy."""
    from farthing.traces.costs import doubt

    if (found := doubt(traces)) is not None:
        remark(f"note: {found}")


def check_nothing_is_lost(out: Path) -> None:
    """Refuse a folder whose bundle promises something.

    Raises:
        InputError: the promise would be lost.
    """
    from farthing.bundle.folder import load
    from farthing.bundle.sealed import BODY
    from farthing.calibration.guarantees.none import NoPromise

    if not (out / BODY).exists():
        return
    certificate = load(out).certificate
    if certificate is not None and not isinstance(certificate.promise, NoPromise):
        raise InputError(
            f"{out}: holds a calibrated bundle, whose promise would be lost; name another folder "
            "or remove that one first"
        )


def graded(traces: Path, grades: Path) -> "Graded":
    """Read traces and the grades beside them.

    Raises:
        InputError: there is no such file of grades, or it does not fit the traces.
    """
    from farthing.experiments.grade_book import GradeBook

    if not grades.is_file():
        raise InputError(f"{grades}: there is no such file of grades; `farthing grade` makes one")
    return GradeBook.open(traces, grades).graded()

"""Whether a result could be written, and what to doubt in what was read."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from farthing.cli.console import remark
from farthing.errors import InputError

if TYPE_CHECKING:
    from farthing.recommendation.partial_grades import LabelledTraces
    from farthing.traces.arrays import TraceArrays
    from farthing.traces.importers.read import Supplied

OPTION = " --"
"""What a line has that names an option."""
WITH_OPTIONS = "import {} with such options first: farthing traces import {} --store traces.db"


def read_traces(*paths: Path) -> "TraceArrays":
    """Read traces, or other tools' files, joined by question; say on stderr what they lack."""
    return checked(*noted(paths))


def checked(arrays: "TraceArrays", notes: Sequence[str]) -> "TraceArrays":
    """Return traces that are no samples of one model; say on stderr what they lack."""
    from farthing.traces.pool import refuse_samples

    refuse_samples(arrays)
    for note in notes:
        remark(f"note: {note}")
    return arrays


def read_samples(paths: Sequence[Path]) -> "TraceArrays":
    """Read traces that may be samples of one model; say on stderr what they lack."""
    arrays, notes = noted(paths)
    for note in notes:
        remark(f"note: {note}")
    return arrays


def noted(
    paths: Sequence[Path], supplied: "Supplied | None" = None
) -> "tuple[TraceArrays, list[str]]":
    """Read traces, or other tools' files, with a line for each thing that they lack."""
    from farthing.traces.files import read_all_with_records

    which = "it" if len(paths) == 1 else "them"
    with_options = WITH_OPTIONS.format(which, " ".join(map(str, paths)))
    try:
        arrays, _, notes = read_all_with_records(paths, supplied)
    except InputError as problem:
        if OPTION not in str(problem):
            raise
        raise InputError(f"{problem}; {with_options}") from None
    return arrays, [*notes, *([with_options] if any(OPTION in note for note in notes) else [])]


def named(paths: Sequence[Path]) -> str:
    """Return what files are called together."""
    return " + ".join(path.name for path in paths)


def the_only(paths: Sequence[Path], what: str) -> Path:
    """Return one file of traces, where several cannot be read."""
    if len(paths) > 1:
        raise InputError(
            f"{', '.join(map(str, paths))}: these are {len(paths)} files of traces, and {what} "
            "reads one; import them into one store first: farthing traces import FILE --store "
            "traces.db"
        )
    return paths[0]


def check_folder(path: Path) -> None:
    """Refuse a folder that could not be written to, before hours of work are lost on it."""
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not _is_writable(nearest):
        which = "" if nearest == path else f"{nearest} "
        problem = f"{which}is no folder that can be written to; name another"
        raise InputError(f"{path}: {problem}")


def check_file(path: Path) -> None:
    """Refuse a file that could not be written, before anything is done for it."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file")
    if not path.parent.exists():
        raise InputError(f"{path}: there is no folder {path.parent}; make it, or name another")
    if not _is_writable(path.parent):
        problem = f"{path.parent} is no folder that can be written to; name another"
        raise InputError(f"{path}: {problem}")


def _is_writable(folder: Path) -> bool:
    try:
        with TemporaryDirectory(dir=folder):
            return True
    except OSError:
        return False


def check_bundle(out: Path) -> None:
    """Refuse a folder that a bundle could not be written to, or whose promise would be lost."""
    from farthing.bundle.folder import check_nothing_is_lost
    from farthing.bundle.sealed import check_replaceable

    check_folder(out)
    check_replaceable(out)
    check_nothing_is_lost(out)


def doubt_costs(traces: "TraceArrays") -> None:
    """Say whose calls have no cost."""
    from farthing.traces.costs import check_costs, doubt

    check_costs(traces)
    if (found := doubt(traces)) is not None:
        remark(f"note: {found}")


def graded(traces: Path, grades: Path) -> "LabelledTraces":
    """Read traces and the grades beside them."""
    from farthing.grading.session import GradeBook

    if not grades.is_file():
        raise InputError(f"{grades}: there is no such file of grades; `farthing grade` makes one")
    return GradeBook.open(traces, grades).graded()

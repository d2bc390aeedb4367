"""Files and folders that appear whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from farthing.errors import InputError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a name beside `path` to write to; what stands there becomes `path` if all goes well.

    Otherwise a file that was there before is left as it was.
    """
    unfinished = Path(f"{path}.part")
    try:
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror}); check the path") from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files beside a folder, then put them in its place by renaming; what was there goes.

    Args:
        folder: where to.
        files: name to content; a name may lie in a folder within, `inner/name`.
    """
    mark = secrets.token_hex(4)
    partial = folder.with_name(f".{folder.name}.{mark}.partial")
    old = folder.with_name(f".{folder.name}.{mark}.old")
    partial.mkdir(parents=True)
    try:
        for name, content in files.items():
            path = partial / name
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        _swap(partial, folder, old)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _swap(new: Path, folder: Path, old: Path) -> None:
    if not folder.exists():
        new.rename(folder)
        return
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old)

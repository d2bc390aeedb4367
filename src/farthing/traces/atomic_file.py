"""Files that appear whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from farthing.errors import InputError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a name beside `path` to write to; what stands there becomes `path` if all goes well.

    Otherwise a file that was there before is left as it was.

    Raises:
        InputError: the folder or the file cannot be written.
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

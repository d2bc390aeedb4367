"""The folder that a report's files go to."""

from collections.abc import Mapping
from pathlib import Path

from farthing.errors import InputError


def write_all(folder: Path, contents: Mapping[str, str], what: str) -> list[Path]:
    """Write files into a folder, which is made where there is none; return their paths.

    Args:
        folder: where they go.
        contents: name of each file to its text.
        what: they are together, for the message.

    Raises:
        InputError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write the {what} to {folder}: {error.strerror}") from error
    return [folder / name for name in contents]

"""Keys that open endpoints: from the environment or a file, and never shown again."""

import os
from pathlib import Path

from farthing.errors import InputError


class Key:
    """A secret; what prints it, logs it or formats it gets dots.

    >>> Key("sk-123")
    Key(...)
    >>> Key("sk-123").hide_in("401: no such key: sk-123")
    '401: no such key: ...'
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __repr__(self) -> str:
        return "Key(...)"

    def reveal(self) -> str:
        """Return the secret, to be sent to the endpoint and nowhere else."""
        return self._secret

    def hide_in(self, text: str) -> str:
        """Return the text without the secret: an endpoint may repeat what it was sent."""
        return text.replace(self._secret, "...")


def key_from_environment(variable: str) -> Key:
    """Read a key from an environment variable.

    Raises:
        InputError: it is not set, or blank.
    """
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise InputError(f"the environment variable {variable} holds no key: export it first")
    return _checked(secret, f"the environment variable {variable}")


def key_from_file(path: Path) -> Key:
    """Read a key from a file that holds nothing else.

    Raises:
        InputError: it cannot be read, or is blank.
    """
    try:
        secret = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"the key file {path} cannot be read: {type(error).__name__}") from None
    if not secret:
        raise InputError(f"the key file {path} is empty: put the key in it, and nothing else")
    return _checked(secret, f"the key file {path}")


def read_key(variable: str | None, path: Path | None) -> Key | None:
    """Read a key from where it is said to be, if anywhere.

    Raises:
        InputError: it is not there.
    """
    if variable is not None:
        return key_from_environment(variable)
    return key_from_file(path.expanduser()) if path is not None else None


def _checked(secret: str, place: str) -> Key:
    if not (secret.isascii() and secret.isprintable()):
        raise InputError(f"{place} holds what cannot be a key: give one line of plain characters")
    return Key(secret)

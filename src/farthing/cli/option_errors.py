"""What the parser says of a bad value, in one line that says what to give."""

import re
from collections.abc import Callable

from farthing import plugins
from farthing.traces.error_text import near

Said = Callable[[re.Match[str]], str]
_NAMES = re.compile(r"'([^']*)'")


def _one_of(found: re.Match[str]) -> str:
    given, names = found["given"], _NAMES.findall(found["names"])
    meant = near(given, names)
    hint = f"did you mean '{meant}'? There are" if meant else "there are"
    return f"is '{given}'; {hint} {', '.join(names)}"


def _no_command(found: re.Match[str]) -> str:
    given = found["given"]
    if given in plugins.names("studies"):
        return f"No such command '{given}': it is `farthing study {given}`"
    return f"No such command '{given}'; `farthing --help` lists them"


_BETTER: tuple[tuple[re.Pattern[str], str | Said], ...] = (
    (re.compile(r"Value error, '(?P<given>.*)' is not one of (?P<names>.*)\."), _one_of),
    (re.compile(r"No such command '(?P<given>[^']*)'\."), _no_command),
    (re.compile(r"Input should be a valid integer.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "must be a number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"must be at most \1"),
    (re.compile(r"Value error, "), ""),
)


def plain(message: str) -> str:
    """Return what is wrong with an option without the words of the library that checks it.

    >>> plain("Invalid value for '--seed': Input should be greater than or equal to 0")
    "Invalid value for '--seed': must be at least 0"
    >>> plain("Value error, 'selectve' is not one of 'parity', 'selective'.")
    "is 'selectve'; did you mean 'selective'? There are parity, selective"
    >>> plain("No such command 'steps'.")
    "No such command 'steps': it is `farthing study steps`"
    """
    for pattern, better in _BETTER:
        message = pattern.sub(better, message)
    return message

"""What the rooms say of an option of the command line, in the words of Python."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from farthing.errors import FarthingError

_COMMAND = re.compile(r"(`?(?:farthing|inspect log) [a-z][^;`]*`?)")
"""A command line that is shown, which stays as it is."""
P = ParamSpec("P")
R = TypeVar("R")
_NAMED = re.compile(r"--[a-z-]+(?: [A-Z]+(?:=[A-Z,]+)?)? \(in Python ([^)]*)\)")
_ARGUMENTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), argument)
    for pattern, argument in (
        (r"--price (\S+)=IN,OUT", r'prices={"\1": (IN, OUT)}'),
        (r"--column '?([\w ]+)=([^\s;,')]+)'?", r'columns={"\1": "\2"}'),
        (r"--cluster COLUMN", 'columns={"cluster": "COLUMN"}'),
        (r"--(gold|job) FILE", r"\1=FILE"),
        (r"--reference ([A-Z]+)", r"reference=\1"),
        (r"--(missing|method|per) ([a-z]+)", r'\1="\2"'),
        (r"--(epsilon|delta|least) (0\.\d+)", r"\1=\2"),
        (r"--budget (0\.\d+)", r"usd=\1"),
        (r"--most (0\.\d+)", r"most_usd=\1"),
        (r"--largest ROLE=USD", r'largest_usd={"ROLE": USD}'),
    )
)  # fmt: skip
_OTHERS = re.compile(r"--([a-z][a-z-]*)")
_OF_IMPORTS = {"from", "score", "requests", "samples", "task", "threshold"}
"""What `farthing traces import` alone takes."""


def in_python(message: str) -> str:
    """Return a message with each option of the command line as the argument of a function.

    >>> in_python("large is a guess; name yours with --reference")
    'large is a guess; name yours with reference'
    >>> in_python("--gold FILE has accepted answers; --price gpt-4o=IN,OUT has yours")
    'gold=FILE has accepted answers; prices={"gpt-4o": (IN, OUT)} has yours'
    >>> in_python("map one with --column answer=COLUMN, or give --missing worst")
    'map one with columns={"answer": "COLUMN"}, or give missing="worst"'
    >>> in_python("import it first: farthing traces import a.csv --store traces.db")
    'import it first: farthing traces import a.csv --store traces.db'
    """
    parts = _COMMAND.split(message)
    return "".join(part if at % 2 else _translated(part) for at, part in enumerate(parts))


def _translated(message: str) -> str:
    said = _NAMED.sub(r"\1", message)
    for option, argument in _ARGUMENTS:
        said = option.sub(argument, said)
    return _OTHERS.sub(_plain, said)


def _plain(option: re.Match[str]) -> str:
    if option[1] in _OF_IMPORTS:
        return f"`farthing traces import` with {option[0]}"
    return option[1].replace("-", "_")


@contextmanager
def python_words() -> Iterator[None]:
    """Have what is refused within name arguments, and not options of the command line."""
    try:
        yield
    except FarthingError as problem:
        problem.args = tuple(in_python(a) if isinstance(a, str) else a for a in problem.args)
        raise


def worded(function: Callable[P, R]) -> Callable[P, R]:
    """Have what a function refuses name its arguments."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with python_words():
            return function(*args, **kwargs)

    return run

"""What a command line has beyond typer's: records of options, plain help, plain errors."""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from farthing.errors import InputError

Values = Mapping[str, Any]
"""What the command line was given, by the names of the options in Python."""
Expansion = tuple[list[Parameter], Callable[[Values], Any]]
"""The options that stand for a parameter, and what makes its value of theirs."""
Expand = Callable[[Parameter], Expansion]
BY_NAME = "The same by name; give it again for several, which are joined by question."
"""What help says of the option beside files that are given without it."""


@dataclass(frozen=True)
class AlsoPositional:
    """Marks an option of files that may be given without its name as well, one after another."""

    help: str
    such_as: str
    """An example, for who gave none."""


def takes_options(
    command: Callable[..., None], special: Mapping[str, Expand] | None = None
) -> Callable[..., None]:
    """Let a command take options as records: typer sees an option for each field.

    A parameter, or a field, whose annotation is a dataclass stands for the fields of that, in
    their order; `special` says by name what others stand for.
    """

    def expand(parameter: Parameter) -> Expansion:
        record = parameter.annotation
        if special and parameter.name in special:
            return special[parameter.name](parameter)
        for mark in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(mark, AlsoPositional):
                return _positional(parameter, mark)
        if not (isinstance(record, type) and is_dataclass(record)):
            return [parameter], lambda values: values[parameter.name]
        parts = [(field.name, *expand(field)) for field in parameters_of(record)]
        options = [option for _, inner, _ in parts for option in inner]
        return options, lambda values: record(**{name: read(values) for name, _, read in parts})

    @wraps(command)
    def run(**values: Any) -> None:
        command(**{name: read(values) for name, (_, read) in parts.items()})

    taken = signature(command, eval_str=True)
    parts = {name: expand(parameter) for name, parameter in taken.parameters.items()}
    options = [
        option.replace(kind=Parameter.KEYWORD_ONLY)
        for inner, _ in parts.values()
        for option in inner
    ]
    run.__signature__ = taken.replace(parameters=options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def _positional(parameter: Parameter, mark: AlsoPositional) -> Expansion:
    argument = typer.Argument(metavar=f"[{parameter.name.upper()}]...", help=mark.help)
    kind = parameter.annotation.__origin__
    place = Parameter(
        f"{parameter.name}_given",
        Parameter.KEYWORD_ONLY,
        default=[],
        annotation=Annotated[kind, argument],
    )

    def read(values: Values) -> Any:
        found = [*values[place.name], *values[parameter.name]]
        if not found and parameter.default is Parameter.empty:
            raise InputError(f"name the {parameter.name}, such as {mark.such_as}")
        return found

    return [place, parameter.replace(default=[])], read


def parameters_of(record: Any) -> list[Parameter]:
    """Return a dataclass's fields as parameters of a function, with their defaults."""
    hints = get_type_hints(record, include_extras=True)
    found = []
    for field in fields(record):
        default = Parameter.empty if field.default is MISSING else field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        found.append(
            Parameter(
                field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
            )
        )
    return found


class _PlainHelp:
    """Leaves out what a flag is of; commands and groups have this alike."""

    def get_params(self, ctx: Any) -> list[Any]:
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class PlainCommand(_PlainHelp, TyperCommand):
    """A command."""


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands."""


Said = Callable[[re.Match[str]], str]
_NAMES = re.compile(r"'([^']*)'")


def _one_of(found: re.Match[str]) -> str:
    from farthing.traces.jsonl import near

    given, names = found["given"], _NAMES.findall(found["names"])
    meant = near(given, names)
    hint = f"did you mean '{meant}'? There are" if meant else "there are"
    return f"is '{given}'; {hint} {', '.join(names)}"


_GROUP = "{the command}"
"""Stands for the command whose help lists those there are."""


def _no_command(found: re.Match[str]) -> str:
    from farthing import plugins

    given = found["given"]
    if given in plugins.names("studies"):
        return f"No such command '{given}': it is `farthing study {given}`"
    near = found["near"].strip() or f"`{_GROUP} --help` lists them"
    return f"No such command '{given}'; {near[:1].lower()}{near[1:]}"


_BETTER: tuple[tuple[re.Pattern[str], str | Said], ...] = (
    (re.compile(r"Value error, '(?P<given>.*)' is not one of (?P<names>.*)\."), _one_of),
    (re.compile(r"No such command '(?P<given>[^']*)'\.(?P<near>.*)"), _no_command),
    (re.compile(r"Input should be a valid integer.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "must be a number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"must be at least \1"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"must be at most \1"),
    (re.compile(r"Value error, "), ""),
)


def plain(message: str, group: str = "farthing") -> str:
    """Return what is wrong with an option without the words of the library that checks it.

    Args:
        message: what the library said.
        group: the command whose help lists those there are.

    >>> plain("Invalid value for '--seed': Input should be greater than or equal to 0")
    "Invalid value for '--seed': must be at least 0"
    >>> plain("Value error, 'selectve' is not one of 'parity', 'selective'.")
    "is 'selectve'; did you mean 'selective'? There are parity, selective"
    >>> plain("No such command 'steps'.")
    "No such command 'steps': it is `farthing study steps`"
    >>> plain("No such command 'bogus'.", "farthing study")
    "No such command 'bogus'; `farthing study --help` lists them"
    """
    for pattern, better in _BETTER:
        message = pattern.sub(better, message)
    return message.replace(_GROUP, group)

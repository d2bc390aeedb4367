"""Options of promises: every kind says which it takes, and the command line reads them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from farthing.cli import files
from farthing.cli.command import Expansion, Values, takes_options
from farthing.cli.options import read_confidence, read_delta, read_epsilon, read_usd
from farthing.errors import InputError
from farthing.promises.base import Per, Promise
from farthing.promises.certificate import kinds_asked
from farthing.promises.texts import Command, PromiseOption

if TYPE_CHECKING:
    from farthing.process.budget import PerQuestion

Given = Mapping[str, Any]
"""The options of promises by their names; what was left out is not there."""
TYPES: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "probability": (Fraction | None, {"parser": read_delta, "metavar": "DECIMAL"}),
    "margin": (Fraction | None, {"parser": read_epsilon, "metavar": "DECIMAL"}),
    "usd": (Fraction | None, {"parser": read_usd, "metavar": "USD"}),
    "role": (str | None, {"metavar": "ROLE"}),
    "per": (Per | None, {}),
    "traces": (Path | None, {"metavar": "FILE"}),
}
"""What is read of an option, by its value, and how."""
CONFIDENCE = "confidence"
Confidence = Annotated[
    Fraction | None,
    typer.Option(
        f"--{CONFIDENCE}",
        parser=read_confidence,
        metavar="DECIMAL",
        help="Confidence of the promise, such as 0.9: 1 - delta.",
    ),
]


@dataclass(frozen=True)
class QuestionBudgetOptions:
    """What a question may cost when it is served."""

    question_budget: Annotated[
        Fraction | None,
        typer.Option(parser=read_usd, metavar="USD", help="Hard limit on the cost of a question."),
    ] = None
    largest: Annotated[
        list[str],
        typer.Option(
            metavar="ROLE=USD",
            help="Largest cost of a call of a role, if the traces lack it; repeat for each role.",
        ),
    ] = field(default_factory=list)

    @property
    def per_question(self) -> "PerQuestion | None":
        """The budget of a question, with the bounds that were declared."""
        from farthing.process.budget import PerQuestion

        bounds = dict(map(_bound, self.largest))
        if self.question_budget is not None:
            return PerQuestion(int(self.question_budget * 10**9), bounds or None)
        if bounds:
            raise InputError("--largest goes with --question-budget; give that too, or leave it")
        return None


def _bound(text: str) -> tuple[str, int]:
    role, equals, usd = text.partition("=")
    if not (role and equals):
        raise InputError(f"--largest {text}: write ROLE=USD, such as --largest guide=0.01")
    try:
        return role, int(read_usd(usd) * 10**9)
    except typer.BadParameter as problem:
        raise InputError(f"--largest {text}: {problem.message}") from None


def kinds_of(command: Command, first: Sequence[str] = ()) -> dict[str, type[Promise]]:
    """Return the kinds of promises that a command can be asked for, by name; some stand first."""
    kinds = {name: kind for name, kind in kinds_asked().items() if command in kind.commands()}
    return {name: kinds[name] for name in dict.fromkeys([*first, *kinds]) if name in kinds}


def takes_promise(
    command: Command, first: Sequence[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the kinds of promises that there are, and their options.

    Its parameter `promise`, or the field of a record of options, takes their names; `given` stands
    where the options do, and gets those that were given. Help names the kinds in `first` first.
    """
    kinds = kinds_of(command, first)
    options = _options(command, kinds.values())

    def given(_: Parameter) -> Expansion:
        def read(values: Values) -> Given:
            found = {name: values[name] for name in options if values[name] is not None}
            confidence = found.pop(CONFIDENCE, None)
            if confidence is not None and "delta" in found:
                raise InputError("--confidence is 1 - delta; give --confidence or --delta")
            return found if confidence is None else {**found, "delta": 1 - confidence}

        return [*options.values()], read

    def named(parameter: Parameter) -> Expansion:
        return [_naming(parameter, tuple(kinds))], lambda values: values[parameter.name]

    return partial(takes_options, special={"promise": named, "given": given})


def _naming(parameter: Parameter, names: tuple[str, ...]) -> Parameter:
    (info,) = parameter.annotation.__metadata__
    choice = Literal[names]  # type: ignore[valid-type]
    taken = choice if parameter.default is not None else choice | None
    return parameter.replace(annotation=Annotated[taken, info])


def _options(command: Command, kinds: Iterable[type[Promise]]) -> dict[str, Parameter]:
    taken: dict[str, list[tuple[str, PromiseOption]]] = {}
    for kind in kinds:
        for option in kind.options:
            if command in option.commands:
                taken.setdefault(option.key, []).append((kind.kind, option))
    parameters = {key: _parameter(key, whose, command) for key, whose in taken.items()}
    if "delta" in parameters:
        parameters[CONFIDENCE] = Parameter(
            CONFIDENCE, Parameter.KEYWORD_ONLY, default=None, annotation=Confidence
        )
    return parameters


def _parameter(key: str, whose: list[tuple[str, PromiseOption]], command: Command) -> Parameter:
    kind, how = TYPES[whose[0][1].value]
    said: dict[str, list[str]] = {}
    for name, option in whose:
        brief = option.brief if command in ("recommend", "certify") else ""
        said.setdefault(brief or option.help, []).append(name)
    text = " ".join(
        what if what[0].isupper() else f"{', '.join(names).capitalize()}: {what}"
        for what, names in said.items()
        if what
    )
    plain = [option.plain for _, option in whose if option.plain]
    flags = [f"--{name}" for name in (whose[0][1].name, *plain[:1])]
    annotation: Any = Annotated[kind, typer.Option(*flags, help=text, **how)]
    return Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def asked_for(name: str, alpha: Fraction, given: Given) -> Promise:
    """Return the promise that is asked for, with its levels said."""
    kinds = kinds_asked()
    kind = kinds[name]
    for option in kind.options:
        if option.needed and option.key not in given:
            raise InputError(f"--promise {name} needs {option.such_as}")
    mine = {option.key for option in kind.options}
    every = {option.key: option.name for each in kinds.values() for option in each.options}
    for key in given:
        if key in every and key not in mine:
            takers = [
                each.kind for each in kinds.values() if any(key == o.key for o in each.options)
            ]
            raise InputError(
                f"--{every[key]} means nothing to --promise {name}, only to {' or '.join(takers)}"
            )
    kind.check_method(given)
    read = {
        option.key: files.read_traces(given[option.key])
        for option in kind.options
        if option.value == "traces"
    }
    return kind.of_options(alpha, {**given, **read})


def with_defaults(name: str, alpha: Fraction | None, given: Given) -> Promise:
    """Return the promise that is asked for, with the levels of its kind where none are said."""
    kind = kinds_asked()[name]
    mine = {option.key: option for option in kind.options if "recommend" in option.commands}
    instead = "alpha" if kind.of_alpha else next(iter(mine))
    useless = [key for key in given if key not in mine and key != "per"]
    if alpha is not None and not kind.of_alpha:
        useless.append("alpha")
    if useless:
        raise InputError(f"--{useless[0]} means nothing to a promise of {name}; give --{instead}")
    per: Per = given.get("per", "question")
    levels = {key: value for key, value in given.items() if key != "per"}
    share = Fraction(1, 10) if alpha is None else alpha
    return kind.of_options(share, levels).counting(per)

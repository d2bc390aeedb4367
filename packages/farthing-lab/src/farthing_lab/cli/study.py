"""`farthing study NAME`: the side studies, each a command whose options are its fields."""

from inspect import Parameter, Signature
from typing import Annotated, Any, get_args

import typer
from typer.main import get_command_from_info
from typer.models import CommandInfo

from farthing import plugins
from farthing.cli import completion, files
from farthing.cli.command import (
    BY_NAME,
    AlsoPositional,
    PlainCommand,
    PlainGroup,
    parameters_of,
    takes_options,
)
from farthing.cli.console import (
    Learning,
    interrupted,
    interruptible,
    remark,
    show,
    show_json,
    trainings,
)
from farthing.cli.options import Json, read_alpha, read_usd
from farthing_lab.cli.compare import read_dataset
from farthing_lab.studies.study import Study, StudyContext, StudyOption

METAVARS = {"Fraction": "USD", "Path": "FILE", "int": "N", "str": "NAME"}
"""What stands for a value of a type in help, unless the option says."""


class StudyGroup(PlainGroup):
    """The registered studies; one is imported when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        del ctx
        return plugins.names("studies")

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a study; None where there is no such."""
        del ctx
        if cmd_name not in plugins.names("studies"):
            return None
        command = CommandInfo(
            cmd_name, cls=PlainCommand, callback=command_of(plugins.load("studies", cmd_name))
        )
        return get_command_from_info(
            command, pretty_exceptions_short=True, rich_markup_mode="markdown"
        )


app = typer.Typer(
    cls=StudyGroup,
    help="Run side studies of shared budgets on recorded or simulated work.",
    rich_markup_mode="markdown",
    no_args_is_help=True,
)


@app.callback()
def _study() -> None: ...


def command_of(kind: type[Any]) -> Any:
    """Return a function with an option for each field of a study, which conducts and shows it."""

    def command(*, as_json: bool, **given: Any) -> None:
        lost = getattr(kind, "lost", Study.lost)
        with interruptible(lost), trainings() as shown:
            context = StudyContext(
                remark,
                lambda name: Learning(shown, name),
                files.read_traces,
                files.read_samples,
                files.doubt_costs,
                read_dataset,
                files.check_file,
                files.check_folder,
                shown.watch,
            )
            study: Study = kind(**given)
            report = study.report(study.measure(context))
        if as_json:
            show_json(report.record)
        else:
            show(report)
        for text in report.remarks:
            remark(text)
        if report.interrupted:
            raise interrupted(lost)

    options = [
        field.replace(annotation=_annotation(*get_args(field.annotation)))
        for field in parameters_of(kind)
    ]
    as_json = Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    command.__signature__ = Signature([*options, as_json])  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in (*options, as_json)}
    command.__doc__ = kind.__doc__
    return takes_options(command)


def _annotation(kind: Any, option: StudyOption) -> Any:
    of_usd = "Fraction" in str(kind) and not option.share
    metavars = (name for name in METAVARS if name in str(kind) and "Literal" not in str(kind))
    given: dict[str, Any] = {
        "help": option.help,
        "metavar": option.metavar or METAVARS.get(next(metavars, "")),
        "min": option.least,
        "parser": read_usd if of_usd else read_alpha if option.share else None,
    }
    if option.argument:
        return Annotated[kind, typer.Argument(**given)]
    if option.complete is not None:
        given["autocompletion"] = getattr(completion, option.complete, None) or completion.names_in(
            option.complete
        )
    if option.default is not None:
        given["show_default"] = option.default
    flags = [] if option.flag is None else [option.flag]
    if option.such_as is not None:
        named = typer.Option(*flags, **given | {"help": BY_NAME})
        return Annotated[kind, named, AlsoPositional(option.help, option.such_as)]
    return Annotated[kind, typer.Option(*flags, **given)]

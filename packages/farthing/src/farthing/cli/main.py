"""The command line: one subcommand, one call into a room."""

import os
import sys
import traceback
from typing import Annotated

import typer

from farthing import __version__
from farthing.cli.command import plain
from farthing.cli.commands import AllCommands
from farthing.errors import CalibrationError, FarthingError, InputError, UnprovedError

WRONG = (InputError, CalibrationError)
"""What the user handed in is at fault."""

app = typer.Typer(
    name="farthing",
    cls=AllCommands,
    help="Answer questions with the least LLM spending that still keeps a promise.",
    epilog="Begin with: farthing demo",
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"farthing {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None: ...


def run() -> None:
    """Run the command line; whatever goes wrong is one line on stderr and an exit code.

    2: the input is wrong (a file, an option, a file that cannot be read or written);
    130: interrupted; 1: anything else. `FARTHING_DEBUG=1` shows the traceback as well.
    """
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    try:
        return app(arguments or ["--help"], prog_name="farthing", standalone_mode=False) or 0
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        said = plain(error.format_message(), context.command_path if context else "farthing")
        return _fail(said, 2) if said else 2  # without arguments, the help was shown
    except FarthingError as error:
        wrong = isinstance(error, WRONG) and not isinstance(error, UnprovedError)
        return _fail(str(error), 2 if wrong else 1)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 2)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", 130)
    except Exception as error:  # noqa: BLE001 - a user never sees a traceback unasked
        return _fail(f"unexpected {type(error).__name__}: {error}; please report this", 1)


def _fail(message: str, code: int) -> int:
    if os.environ.get("FARTHING_DEBUG"):
        traceback.print_exc()
    line = " ".join(message.split())
    sys.stderr.write(f"farthing: {line}\n")
    return code

"""The command line: one subcommand, one call into a room."""

import os
import sys
import traceback
from typing import Annotated

import typer

from farthing import __version__
from farthing.cli import (
    allocate,
    ask,
    check,
    collect,
    compare,
    corl,
    demo,
    explore,
    generate,
    grade,
    joins,
    keys,
    lm,
    memory,
    methods,
    parts,
    pipeline,
    plan,
    recommend,
    redeploy,
    samples,
    serve,
    spending,
    steps,
    traces,
    traffic,
    tune,
    watch,
)
from farthing.cli.flags import PlainCommand, PlainGroup
from farthing.cli.option_errors import plain
from farthing.errors import CalibrationError, FarthingError, InputError, UnprovedError

WRONG = (InputError, CalibrationError)
"""What the user handed in is at fault."""

app = typer.Typer(
    name="farthing",
    cls=PlainGroup,
    help="Answer questions with the least LLM spending that still keeps a promise.",
    epilog="Begin with: farthing demo",
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.add_typer(traces.app, name="traces")
app.add_typer(lm.app, name="lm")
app.add_typer(corl.app, name="corl")
app.add_typer(keys.app, name="keys")
app.add_typer(traffic.app, name="traffic")
app.command("generate")(generate.generate)
app.command("methods")(methods.methods)
app.command("collect")(collect.collect)
app.command("recommend")(recommend.recommend)
app.command("train")(pipeline.train)
app.command("calibrate")(pipeline.calibrate)
app.command("grade")(grade.grade)
app.command("evaluate")(pipeline.evaluate)
app.command("check")(check.check)
app.command("ask")(ask.ask)
app.command("allocate")(allocate.allocate)
app.command("explore")(explore.explore)
app.command("samples")(samples.samples)
app.command("parts")(parts.parts)
app.command("joins")(joins.joins)
app.command("steps")(steps.steps)
app.command("memory")(memory.memory)
app.command("plan")(plan.plan)
app.command("serve")(serve.serve)
app.command("watch")(watch.watch)
app.command("recalibrate")(redeploy.recalibrate)
app.command("rollback")(redeploy.rollback)
app.command("spending")(spending.spending)
app.command("compare")(compare.compare)
app.command("sweep")(tune.sweep)
for one in (
    *app.registered_commands,
    *traces.app.registered_commands,
    *lm.app.registered_commands,
    *corl.app.registered_commands,
    *keys.app.registered_commands,
    *traffic.app.registered_commands,
):
    one.cls = PlainCommand


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
        said = plain(error.format_message())
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

"""`farthing lm`: the small language models that ship with the package."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from farthing.cli import completion
from farthing.cli.console import remark, show, show_json
from farthing.cli.flags import PlainGroup
from farthing.cli.options import Json
from farthing.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from farthing.models.embedded import EmbeddedSettings
    from farthing.models.local import LocalSettings

app = typer.Typer(
    cls=PlainGroup, help="List and serve small language models.", no_args_is_help=True
)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the language models that ship with the package, and what they cost.

    Example: farthing lm list --json
    """
    from msgspec import to_builtins

    from farthing.models.embedded import known

    models = known()
    if as_json:
        show_json(to_builtins(models))
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("Model", no_wrap=True)
    table.add_column("What it is good at", ratio=1)
    table.add_column("Parameters", no_wrap=True, justify="right")
    table.add_column("USD per million in, out", no_wrap=True, justify="right")
    for model in models:
        price = f"{model.input_per_million:g}, {model.output_per_million:g}"
        table.add_row(model.name, model.meaning, f"{model.parameters:,}", price)
    show(table)
    show(Text('Serve them: farthing lm serve. In a job: provider = "embedded".'))


@app.command()
def serve(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="NAME",
            help="An embedded model; give it again for several.",
            show_default="all of them, unless there is a --path",
            autocompletion=completion.embedded,
        ),
    ] = [],  # noqa: B006 - typer copies it
    path: Annotated[
        list[str],
        typer.Option(
            "--path",
            metavar="FOLDER",
            help="A folder of weights, or smollm2; it is offered under the folder's name.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes a free one.")
    ] = 8400,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen at.")] = (
        "127.0.0.1"
    ),
    batch: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default="64", help="Prompts answered together."),
    ] = None,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Where they run: cpu, cuda, cuda:1, ...")
    ] = "cpu",
) -> None:
    """Serve language models as an OpenAI-compatible endpoint, until Ctrl-C.

    Example: farthing lm serve --model small --model large --port 8400
    """
    try:
        from farthing.lm.server import bind
        from farthing.lm.server import serve as serve_models
    except ModuleNotFoundError:
        raise MissingExtraError("serving models", "live") from None
    from farthing.models.prices import PriceTable

    chosen = _chosen(model, path, device, batch)
    listening = bind(host, port)
    remark("loading the models")
    models = {settings.model: settings.open(PriceTable()) for settings in chosen}
    serve_models(models, listening, lambda url: remark(f"serving {', '.join(models)} at {url}"))


def _chosen(
    names: list[str], paths: list[str], device: str, batch: int | None
) -> "list[EmbeddedSettings | LocalSettings]":
    from farthing.models.embedded import EmbeddedSettings, find, known
    from farthing.models.local import BATCH, LocalSettings

    batch = batch or BATCH
    names = names or ([] if paths else [one.name for one in known()])
    placed = {Path(path).name: path for path in paths}
    if twice := {one for one in names if names.count(one) > 1 or one in placed}:
        raise InputError(f"two models are called '{min(twice)}'; name each once")
    if len(placed) < len(paths):
        raise InputError("two folders have the same name; rename one, which names its model")
    return [
        *(EmbeddedSettings(model=find(n).name, device=device, batch=batch) for n in names),
        *(
            LocalSettings(model=name, path=where, device=device, batch=batch)
            for name, where in placed.items()
        ),
    ]

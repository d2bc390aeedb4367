"""`farthing lm`: the small language models that ship with the package."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from farthing.cli import files
from farthing.cli.command import PlainGroup
from farthing.cli.completion import begun
from farthing.cli.console import interruptible, remark, show, show_json, trainings
from farthing.cli.options import Device, Json
from farthing.errors import InputError, MissingExtraError
from farthing.reports.table import Table

if TYPE_CHECKING:
    from farthing_lab.models.embedded import EmbeddedSettings
    from farthing_lab.models.local import LocalSettings

app = typer.Typer(
    cls=PlainGroup, help="List, serve and train small language models.", no_args_is_help=True
)


def embedded(typed: str) -> list[str]:
    """Offer the names of embedded models to the Tab key."""
    from farthing_lab.models.embedded import known

    return begun(sorted(model.name for model in known()), typed)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the language models that ship with the package, and what they cost.

    Example: farthing lm list --json
    """
    from msgspec import to_builtins

    from farthing_lab.models.embedded import known

    models = known()
    if as_json:
        show_json(to_builtins(models))
        return
    columns = (
        ("Model", lambda m: m.name),
        ("What it is good at", lambda m: m.meaning),
        ("Parameters", lambda m: f"{m.parameters:,}"),
        (
            "USD per million in, out",
            lambda m: f"{m.input_per_million:g}, {m.output_per_million:g}",
        ),
    )
    show(Table(columns, models, layout=("word", "prose")))
    show(Text('Serve them: farthing lm serve. In a job: provider = "embedded".'))


@app.command()
def serve(
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="NAME",
            help="An embedded model; may be repeated.",
            show_default="all of them, unless there is a --path",
            autocompletion=embedded,
        ),
    ] = [],  # noqa: B006 - typer copies it
    path: Annotated[
        list[str],
        typer.Option(
            "--path",
            metavar="FOLDER",
            help="A folder of weights, or smollm2; served under the folder's name.",
        ),
    ] = [],  # noqa: B006 - typer copies it
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0 takes a free one.")
    ] = 8400,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on.")] = (
        "127.0.0.1"
    ),
    batch: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", show_default="64", help="Prompts per batch."),
    ] = None,
    device: Device = "cpu",
) -> None:
    """Serve language models as an OpenAI-compatible endpoint, until Ctrl-C.

    Example: farthing lm serve --model small --model large --port 8400
    """
    from farthing.models.chat_serving import bind
    from farthing.models.prices import PriceTable
    from farthing_lab.lm.server import serve as serve_models

    chosen = _chosen(model, path, device, batch)
    with bind(host, port) as listening:
        remark("loading the models")
        models = {settings.model: settings.open(PriceTable()) for settings in chosen}
        serve_models(models, listening, lambda url: remark(f"serving {', '.join(models)} at {url}"))


@app.command()
def train(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Output folder.")],
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            metavar="NAME",
            help="An embedded model; may be repeated.",
            show_default="all of them",
            autocompletion=embedded,
        ),
    ] = [],  # noqa: B006 - typer copies it
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Models to train at once, one core each.")
    ] = 2,
) -> None:
    """Train the embedded models from nothing, as those that ship were; go on where it stopped.

    Example: farthing lm train --out weights
    """
    from farthing_lab.models.embedded import find

    names = {find(name).name for name in model}
    files.check_folder(out)
    try:
        from farthing_lab.lm.make import NETWORKS, make_all
    except ModuleNotFoundError:
        raise MissingExtraError("training language models", "lm", "farthing-lab") from None
    wanted = [one for one in NETWORKS if not names or one.name in names]
    with trainings() as shown, interruptible(f"the same command goes on from {out}"):
        made = make_all(
            wanted,
            out,
            workers=workers,
            watch=lambda name, done, steps: shown.update(
                name, done.step, steps, {"loss": done.loss}
            ),
        )
    lines = []
    for card in made:
        right, asked = (sum(getattr(m, what) for m in card.measured) for what in ("right", "asked"))
        share = f"{right / asked:.3f} of {asked:,}"
        lines.append((card.name, f"{card.seconds / 60:.1f}", f"{card.symbols:,}", share))
    headings = ("Model", "Minutes", "Symbols read", "Right, of fresh questions")
    show(Table.of(headings, lines, layout=("word",)))
    show(Text(f'Use them: provider = "embedded", folder = "{out}". How each did: {out}/NAME/{LOG}'))


LOG = "training.json"
"""What each model's folder says of its training."""


def _chosen(
    names: list[str], paths: list[str], device: str, batch: int | None
) -> "list[EmbeddedSettings | LocalSettings]":
    from farthing_lab.models.embedded import EmbeddedSettings, find, known
    from farthing_lab.models.local import BATCH, LocalSettings
    from farthing_lab.models.smollm2 import NAME as SMOLLM2

    batch = batch or BATCH
    names = names or ([] if paths else [one.name for one in known()])
    placed = {Path(path).name: path for path in paths}
    if twice := {one for one in names if names.count(one) > 1 or one in placed}:
        raise InputError(f"two models are called '{min(twice)}'; name each once")
    if len(placed) < len(paths):
        raise InputError("two folders have the same name; rename one, which names its model")
    for where in paths:
        if where != SMOLLM2 and not Path(where).is_dir():
            raise InputError(f"{where}: there is no such folder of weights; check the path")
    return [
        *(EmbeddedSettings(model=find(n).name, device=device, batch=batch) for n in names),
        *(
            LocalSettings(model=name, path=where, device=device, batch=batch)
            for name, where in placed.items()
        ),
    ]

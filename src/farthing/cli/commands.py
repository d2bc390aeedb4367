"""Every command by its name; its module is imported when it is run or asked for its own help."""

from copy import copy
from functools import cached_property
from importlib import import_module
from typing import Any

import typer
from typer.main import get_command_from_info, get_group
from typer.models import CommandInfo

from farthing.cli.command import PlainCommand, PlainGroup

PANELS = {
    "Save money": {
        "demo": (
            "demo:demo",
            "Ask two small language models, learn when the expensive one is needed, and prove it.",
        ),
        "sample-log": (
            "sample_log:sample_log",
            "Write a sample log: 2,000 support tickets, each answered by three models.",
        ),
        "recommend": (
            "recommend:recommend",
            (
                "Say what to use instead of the model that is paid for today, what it saves, and "
                "prove it."
            ),
        ),
        "try": (
            "trying:try_models",
            (
                "Ask cheaper models a sample of a log's requests, and say what could be saved with "
                "them."
            ),
        ),
        "collect": (
            "collect:collect",
            "Ask every question of a job and store the traces; run it again to go on.",
        ),
        "ask": (
            "ask:ask",
            "Answer with as few calls as the bundle's policy needs, and say what is promised.",
        ),
        "calibrate": (
            "pipeline:calibrate",
            "Set a bundle's threshold on held-out questions, and print what that promises.",
        ),
        "evaluate": (
            "pipeline:evaluate",
            "Measure a bundle on questions that neither trained nor calibrated it.",
        ),
        "check": (
            "pipeline:check",
            "Say whether a bundle's certificate still applies to new questions, from their scores.",
        ),
        "grade": (
            "grade:grade",
            "List the answers whose grades move a proof most, take grades, and say what is proved.",
        ),
    },
    "Serve": {
        "serve": (
            "serve:serve",
            "Serve OpenAI's chat completions: spend less, keep the promise, never overspend.",
        ),
        "watch": (
            "watch:watch",
            (
                "Say whether promises are kept in live traffic, which alarms rang, and what "
                "decided since."
            ),
        ),
        "recalibrate": (
            "redeploy:recalibrate",
            "Set the threshold of a gateway's bundle anew on the audits of its live traffic.",
        ),
        "rollback": (
            "redeploy:rollback",
            "Put the version of a gateway's bundle that decided before back in its place.",
        ),
        "spending": (
            "spending:spending",
            (
                "Say what every key, team, policy and model was charged, and what is left of each "
                "limit."
            ),
        ),
        "keys": ("keys:app", "Make, list and revoke keys to a gateway."),
        "traffic": ("traffic:app", "Show and export what passed through a gateway."),
        "gateway": ("gateway:app", "Look after a gateway: its database, its configuration."),
    },
    "Research": {
        "compare": (
            "compare:compare",
            "Train policies, calibrate and judge each on many splits, and write a report.",
        ),
        "train": (
            "pipeline:train",
            "Train one policy and save it as a bundle, with its training curves beside it.",
        ),
        "methods": (
            "methods:methods",
            "List every method: what it does, in which action spaces, and what it needs.",
        ),
        "generate": (
            "generate:generate",
            "Write traces of a generator whose optimum is known.",
        ),
        "study": (
            "study:app",
            "Side studies: what else could be done with the money, on recorded or simulated work.",
        ),
        "corl": ("corl:app", "Teach, train, evaluate and run a controller LLM that calls experts."),
        "lm": ("lm:app", "List, serve and train small language models."),
    },
    "Data": {"traces": ("traces:app", "Import, export and describe recorded traces.")},
}
"""The panels of help; of each command where it is (`module:function`) and its line."""


class Listed(PlainCommand):
    """What help shows of a command that nobody has imported."""

    def __init__(self, name: str, place: str, line: str, panel: str) -> None:
        super().__init__(name, help=line, rich_help_panel=panel)
        self._place, self._panel = place, panel

    @cached_property
    def command(self) -> Any:
        """The command or group itself, imported now."""
        module, _, attribute = self._place.partition(":")
        found = getattr(import_module(f"farthing.cli.{module}"), attribute)
        if not isinstance(found, typer.Typer):
            info = CommandInfo(
                self.name, cls=PlainCommand, callback=found, rich_help_panel=self._panel
            )
            return get_command_from_info(
                info, pretty_exceptions_short=True, rich_markup_mode="markdown"
            )
        found.rich_markup_mode = "markdown"
        for inner in found.registered_commands:
            inner.cls = PlainCommand
        group = get_group(found)
        group.name = self.name
        return group


class AllCommands(PlainGroup):
    """All commands; one is imported when it is run."""

    _imports = True

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for panel, commands in PANELS.items():
            for name, (place, line) in commands.items():
                self.commands[name] = Listed(name, place, line, panel)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None where there is no such."""
        found = super().get_command(ctx, cmd_name)
        return found.command if isinstance(found, Listed) and self._imports else found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands by their lines, without importing them."""
        shown = copy(self)
        shown._imports = False  # noqa: SLF001 - a copy of this one
        super(AllCommands, shown).format_help(ctx, formatter)

"""Every command by its name; its module is imported when it is run or asked for its own help."""

from copy import copy
from functools import cached_property
from typing import Any

import typer
from typer.main import get_command_from_info, get_group
from typer.models import CommandInfo

from farthing.cli.command import PlainCommand, PlainGroup
from farthing.errors import MissingPackageError

PANELS = {
    "Save money": {
        "demo": (
            "Ask two small language models, learn when the expensive one is needed, and prove it."
        ),
        "sample-log": "Write a sample log: 2,000 support tickets, each answered by three models.",
        "recommend": (
            "Say what to use instead of the model that is paid for today, what it saves, and "
            "prove it."
        ),
        "try": (
            "Ask cheaper models a sample of a log's requests, and say what could be saved with "
            "them."
        ),
        "collect": "Ask every question of a job and store the traces; run it again to go on.",
        "ask": "Answer with as few calls as the bundle's policy needs, and say what is promised.",
        "calibrate": (
            "Set a bundle's threshold on held-out questions, and print what that promises."
        ),
        "evaluate": "Measure a bundle on questions that neither trained nor calibrated it.",
        "check": (
            "Say whether a bundle's certificate still applies to new questions, from their scores."
        ),
        "grade": (
            "List the answers whose grades move a proof most, take grades, and say what is proved."
        ),
    },
    "Serve": {
        "serve": "Serve OpenAI's chat completions: spend less, keep the promise, never overspend.",
        "watch": (
            "Say whether promises are kept in live traffic, which alarms rang, and what "
            "decided since."
        ),
        "recalibrate": (
            "Set the threshold of a gateway's bundle anew on the audits of its live traffic."
        ),
        "rollback": "Put the version of a gateway's bundle that decided before back in its place.",
        "spending": (
            "Say what every key, team, policy and model was charged, and what is left of each "
            "limit."
        ),
        "keys": "Make, list and revoke keys to a gateway.",
        "traffic": "Show and export a gateway's recorded requests.",
        "gateway": "Look after a gateway: its database, its configuration.",
    },
    "Research": {
        "compare": "Train policies, calibrate and judge each on many splits, and write a report.",
        "train": "Train one policy and save it as a bundle, with its training curves beside it.",
        "methods": "List every method: what it does, in which action spaces, and what it needs.",
        "generate": "Write traces of a generator whose optimum is known.",
        "study": "Run side studies of shared budgets on recorded or simulated work.",
        "corl": "Train, evaluate and run a controller LLM that calls experts.",
        "lm": "List, serve and train small language models.",
    },
    "Data": {"traces": "Import, export and describe recorded traces."},
}
"""The panels of help, and the line of each command; an entry point says where a command is."""
PACKAGES = dict.fromkeys(PANELS["Serve"], "farthing-gateway") | dict.fromkeys(
    ("demo", "compare", "generate", "study", "corl", "lm"), "farthing-lab"
)
"""The package that brings a command, where it is not this one."""


class Listed(PlainCommand):
    """What help shows of a command that nobody has imported."""

    def __init__(self, name: str, line: str, panel: str) -> None:
        super().__init__(name, help=line, rich_help_panel=panel)
        self._panel = panel

    @cached_property
    def command(self) -> Any:
        """The command or group itself, imported now.

        Raises:
            MissingPackageError: the package that brings it is not installed.
        """
        from farthing import plugins

        name = str(self.name)
        if name not in plugins.names("commands"):
            raise MissingPackageError(f"farthing {name}", PACKAGES.get(name, "farthing"))
        found = plugins.load("commands", name)
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
            for name, line in commands.items():
                self.commands[name] = Listed(name, line, panel)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None where there is no such."""
        found = super().get_command(ctx, cmd_name)
        if not isinstance(found, Listed) or not self._imports:
            return found
        try:
            return found.command
        except MissingPackageError:
            if ctx.resilient_parsing:  # the Tab key
                return found
            raise

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands by their lines, without importing them."""
        shown = copy(self)
        shown._imports = False  # noqa: SLF001 - a copy of this one
        super(AllCommands, shown).format_help(ctx, formatter)

"""Help without the types of flags: `<bool>` beside `--help` tells nobody anything."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class _PlainHelp:
    """Leaves out what a flag is of; commands and groups have this alike."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, the flags among them without a type."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class PlainCommand(_PlainHelp, TyperCommand):
    """A command."""


class PlainGroup(_PlainHelp, TyperGroup):
    """A group of commands."""

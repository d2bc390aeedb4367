"""What a terminal would show, as text."""

from typing import Any


def drawn(picture: Any) -> str:
    """Draw what a terminal would show, in 80 columns and without colours."""
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415 - only where something is drawn

    text = StringIO()
    Console(file=text, width=80, color_system=None, legacy_windows=False).print(picture)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).rstrip()

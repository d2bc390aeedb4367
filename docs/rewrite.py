"""Runs the console blocks of pages, and writes what they print where the pages show it.

    .venv/bin/python docs/rewrite.py [PAGE ...]

Without a page it rewrites them all; `tests/cli/test_pages.py` runs the same and compares. A page's
blocks run in order, in one empty folder, in a terminal of 80 columns, stdout and stderr together. A
block in which no command prints anything is not run. A comment right above a block says more:

    <!-- with: FILE, FILE -->    these files of the repository are copied to the folder first; a
                                 script of Python is run there
    <!-- slow -->                the quick tests leave it out
    <!-- not run: REASON -->     below it stands `Printed on YYYY-MM-DD at commit HASH`

A paragraph `...` in what a command prints stands for all paragraphs that are left out there.
"""

import argparse
import math
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from farthing.cli import main as cli

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*) -->\n+)?^```(?P<kind>console|text)\n(?P<body>(?:(?!```).*\n)*)```\n",
    re.MULTILINE,
)
COMMAND = re.compile(
    r"^\$ (?:\S*/)?farthing (?P<line>.*)\n(?P<printed>(?:(?!\$ ).*\n)*)", re.MULTILINE
)
DATED = re.compile(r"\s*Printed on \d{4}-\d\d-\d\d at commit [0-9a-f]{7,40}\b")
FIGURE = re.compile(r"\d\.\d\d|\d ?%|\$\d")
LEFT_OUT = "..."
TERMINAL = {"COLUMNS": "80", "LINES": "24", "NO_COLOR": "1"}
UNSET = ("FORCE_COLOR", "TTY_COMPATIBLE", "FARTHING_DEBUG")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page that shows commands, or what one printed."""

    start: int
    """Where its body begins in the page, in characters."""
    body: str
    kind: str
    """`console` or `text`."""
    mark: str
    """What the comment above it says; empty without one."""
    dated: bool
    """Whether the page says below it when and at which commit it was printed."""

    @property
    def lines(self) -> list[str]:
        """The command lines of ours that it shows."""
        shown = COMMAND.finditer(self.body) if self.kind == "console" else ()
        return [found["line"] for found in shown]

    @property
    def printed(self) -> str:
        """What it shows that a command printed."""
        if self.kind == "text":
            return self.body
        return "".join(found["printed"] for found in COMMAND.finditer(self.body))

    @property
    def runs(self) -> bool:
        """Whether what it shows comes out of a run."""
        run = self.kind == "console" and not self.mark.startswith("not run: ")
        return run and bool(self.printed.strip())

    @property
    def unfounded(self) -> bool:
        """Whether it shows figures that come out of no run and have no date."""
        return not self.runs and not self.dated and FIGURE.search(self.printed) is not None


def blocks(text: str) -> Iterator[Block]:
    """Find the blocks of a page, in order."""
    for found in BLOCK.finditer(text):
        dated = DATED.match(text, found.end()) is not None
        yield Block(found.start("body"), found["body"], found["kind"], found["mark"] or "", dated)


def rewritten(text: str, *, slow: bool = True) -> str:
    """Return the page as a run writes it; with `slow` False slow blocks stay as they are."""
    parts, end = [], 0
    terminal = {name: value for name, value in os.environ.items() if name not in UNSET} | TERMINAL
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        patch.dict(os.environ, terminal, clear=True),
    ):
        for block in blocks(text):
            if not block.runs or (block.mark == "slow" and not slow):
                continue
            if block.mark.startswith("with: "):
                provide(block.mark.removeprefix("with: "))
            parts += [text[end : block.start], COMMAND.sub(rerun, block.body)]
            end = block.start + len(block.body)
    return "".join([*parts, text[end:]])


def provide(names: str) -> None:
    """Put files of the repository into the present folder, and run scripts there."""
    for name in names.split(", "):
        if name.endswith(".py"):
            runpy.run_path(str(ROOT / name), run_name="__main__")
        else:
            shutil.copy(ROOT / name, ".")


def rerun(found: re.Match[str]) -> str:
    """Return a command as the page has it, with what it prints now."""
    said = printed(found["line"])
    return found[0].removesuffix(found["printed"]) + abridged(said, found["printed"])


def printed(line: str) -> str:
    """Run a command line in this process and return what it prints, both streams together."""
    words, target = shlex.split(line, comments=True), None
    if ">" in words:
        *words, _, target = words
    both, file = StringIO(), StringIO()
    with (
        redirect_stdout(file if target else both),
        redirect_stderr(both),
        patch("sys.argv", ["farthing", *words]),
        patch("farthing.cli.console.SAID_S", math.inf),  # how far it is depends on the machine
        suppress(SystemExit),
    ):
        cli.run()
    if target:
        Path(target).write_text(file.getvalue())
    if "please report this" in both.getvalue():
        raise RuntimeError(f"farthing {line}: {both.getvalue()}")
    return both.getvalue()


def abridged(said: str, shown: str) -> str:
    r"""Leave out of what was said as many paragraphs as the page does.

    >>> abridged("a\n\nb\n\nc\n\nd\n", "A\n\n...\n\nD\n")
    'a\n\n...\n\nd\n'
    """
    before, after = shown.strip("\n").split("\n\n"), []
    if LEFT_OUT not in before:
        return said
    place = before.index(LEFT_OUT)
    after, before = before[place + 1 :], before[:place]
    paragraphs = said.strip("\n").split("\n\n")
    last = paragraphs[len(paragraphs) - len(after) :]
    return "\n\n".join([*paragraphs[: len(before)], LEFT_OUT, *last]) + "\n"


def main() -> None:
    """Rewrite the pages that are named."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    warnings.simplefilter("error")
    for page in arguments.parse_args().pages or PAGES:
        old = page.read_text()
        new = rewritten(old)
        if new != old:
            page.write_text(new)
            sys.stderr.write(f"{page}: rewritten\n")


if __name__ == "__main__":
    main()

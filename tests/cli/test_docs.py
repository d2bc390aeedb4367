"""Every command line that the documentation shows can be given."""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import typer
from rewrite import PAGES, blocks
from typer.core import TyperGroup

from farthing.cli.main import app


@cache
def root() -> TyperGroup:
    """Build the program's commands, once."""
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    return group


@cache
def parse(line: str) -> str:
    """Read a command line as the program does, without running it; return the command's name."""
    words = shlex.split(re.split(r">|\s\|\s", line)[0], comments=True)
    command: Any = root()
    name: list[str] = []
    while isinstance(command, TyperGroup):
        name.append(words.pop(0))
        command = inside(command)[name[-1]]
    command.make_context("farthing", words)
    return " ".join(name)


@cache
def inside(group: TyperGroup) -> dict[str, Any]:
    """Return the commands of a group, those that it imports when they are asked for as well."""
    context = typer.Context(group)
    return {name: group.get_command(context, name) for name in group.list_commands(context)}


LINES = [line for page in PAGES for block in blocks(page.read_text()) for line in block.lines]


def commands(group: TyperGroup, above: str = "") -> dict[str, str]:
    """Return the help text of every command by its full name."""
    found: dict[str, str] = {}
    for name, command in inside(group).items():
        if isinstance(command, TyperGroup):
            found |= commands(command, f"{name} ")
        else:
            found[above + name] = command.help or ""
    return found


@pytest.mark.parametrize("line", LINES)
def test_a_documented_command_line_can_be_given(line: str) -> None:
    assert parse(line) in commands(root())


def test_each_command_is_documented_and_helps_with_an_example() -> None:
    documented = {parse(line) for line in LINES}
    for name, text in commands(root()).items():
        example = re.search(r"Example: farthing (.*)", text, re.DOTALL)
        assert example, name
        assert parse(" ".join(example[1].split())) == name
        assert name in documented


def test_help_does_not_say_that_a_flag_is_a_flag(farthing: Callable[..., Any]) -> None:
    for command in ((), ("traces", "import"), ("collect",), ("ask",)):
        said = farthing(*command, "--help").out
        assert "--help" in said
        assert "bool" not in said


def test_help_names_no_option_that_a_command_lacks() -> None:
    for name in commands(root()):
        command: Any = root()
        for word in name.split():
            command = inside(command)[word]
        options = {one for param in command.params for one in param.opts}
        for param in command.params:
            named = set(re.findall(r"(?<!\w)--[a-z][a-z-]*", getattr(param, "help", None) or ""))
            assert named <= options, (name, param.name)


def test_a_wrong_option_would_be_noticed() -> None:
    with pytest.raises(typer.TyperException):
        parse("compare --out report --splitz 3")


def test_each_line_of_the_help_is_the_first_of_its_command() -> None:
    for name, command in inside(root()).items():
        first, *_ = (command.help or "").split("\n\n")
        line = root().commands[name].help
        assert line == " ".join(first.split()), name


def test_a_study_that_is_given_no_traces_says_so(refused: Callable[..., str]) -> None:
    said = refused("study", "allocate", "--budget", "1")
    assert said == "farthing: name the traces, such as runs.jsonl\n"


@pytest.mark.slow
def test_help_imports_no_command() -> None:
    program = "import sys; from farthing.cli.main import _run; _run([]); print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"numpy", "asyncio", "farthing.cli.recommend", "farthing.plugins"} & {*loaded}

"""The Tab key offers commands, options and names, and is quick about it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FARTHING = Path(sys.executable).with_name("farthing")


def typed(line: str) -> dict[str, str]:
    """Return what a shell says of a line when the Tab key is pressed at its end."""
    return {
        "_FARTHING_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("farthing tra", {"train", "traces"}),
        ("farthing traces i", {"import", "info"}),
        ("farthing train --po", {"--policy"}),
        ("farthing train --policy cc", {"ccpo", "ccpo-lambda"}),
        ("farthing study sweep --policy look", {"lookahead"}),
        ("farthing compare --policies fixed,sto", {"fixed,stopping"}),
        ("farthing compare --preset mmlu", {"mmlu-llama2-7b"}),
        ("farthing generate --preset hot", {"hotpotqa-llama2-7b"}),
        ("farthing calibrate --promise par", {"parity"}),
        ("farthing traces import a.csv --from li", {"litellm"}),
        ("farthing traces import a.csv --task gsm", {"gsm8k"}),
    ],
)
def test_names_that_begin_so_are_offered(
    farthing: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, line: str, names: set[str]
) -> None:
    for name, value in typed(line).items():
        monkeypatch.setenv(name, value)
    done = farthing()
    found = done.out.split()
    assert (done.code, done.err) == (0, "")
    assert names <= set(found)
    assert all(name.startswith(line.rpartition(" ")[2]) for name in found)


def test_every_method_is_offered() -> None:
    """In a process of its own, as a shell asks."""
    done = subprocess.run(
        [str(FARTHING)],
        env=os.environ | typed("farthing train --policy "),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert {"ccpo", "uala", "always", "random"} <= set(done.stdout.split())


def test_the_script_for_a_shell_is_shown() -> None:
    done = subprocess.run(
        [str(FARTHING)],
        env=os.environ | {"_FARTHING_COMPLETE": "source_zsh"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "#compdef farthing" in done.stdout


def test_completing_loads_nothing_that_is_slow() -> None:
    program = (
        "import sys\n"
        "from farthing.cli import completion, main\n"
        "completion.several_methods('a')\n"
        "print(*({'torch', 'sklearn', 'matplotlib', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "\n"

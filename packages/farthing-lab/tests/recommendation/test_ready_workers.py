"""Workers are copies of a process that has loaded what they need."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import signal, sys
from farthing.recommendation.base import ignore
from farthing_lab.comparison.parallel import preload, train_all

class Look:
    name, instant = "look", False

    def run(self, questions, progress):
        return "colorsys" in sys.modules

if __name__ == "__main__":
    preload(sys.argv[1:], 2)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, [])
    print(train_all([Look(), Look()], "questions", 2, ignore))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only on Linux are processes copied")
@pytest.mark.parametrize(
    ("modules", "found"),
    [
        (["colorsys"], "[True, True]"),
        ([], "[False, False]"),
        (["no_such_module"], "[False, False]"),
    ],
)
def test_workers_have_what_was_loaded_for_them(
    tmp_path: Path, modules: list[str], found: str
) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(path), *modules], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == (found, "")

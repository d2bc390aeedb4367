"""A test marked `extras` is skipped where a package is missing, and an error under `-m extras`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest

@pytest.mark.extras("numpy")
def test_there(): ...

@pytest.mark.extras("numpy", "no_such_package")
def test_missing(): ...

def test_unmarked(): ...
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "status", "outcome"),
    [
        ([], 0, "2 passed, 1 skipped"),
        (["-m", "extras"], 1, "1 passed, 1 deselected, 1 error"),
    ],
)
def test_a_missing_package(tmp_path: Path, arguments: list[str], status: int, outcome: str) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS)
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-rsE"]
    command = [sys.executable, "-m", "pytest", *settings, *arguments, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout
    assert outcome in done.stdout
    assert "no_such_package" in done.stdout

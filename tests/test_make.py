"""`make setup` says one line, whatever pip has to remark; what went wrong it says in full."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "{}"
version = "1"
"""
BACKEND = """
from pathlib import Path


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    raise AssertionError("nothing is installed here")


def prepare_metadata_for_build_editable(metadata_directory, config_settings=None):
    folder = Path(metadata_directory, f"{NAME}-1.dist-info")
    folder.mkdir()
    folder.joinpath("METADATA").write_text(TEXT)
    return folder.name
"""
EXTRAS = ("lm", "math", "parquet", "plots", "postgres", "search")
METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: 1\n"
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")


def setup(folder: Path, needed: str) -> subprocess.CompletedProcess[str]:
    """Have make set up a project that needs another one; pip installs nothing, and warns."""
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "requirements").mkdir()
    for file in ("constraints.txt", "requirements/dev.txt"):
        (folder / file).touch()
    for name in ("farthing", "farthing-gateway", "farthing-lab"):
        package = folder / "packages" / name
        package.mkdir(parents=True)
        (package / "pyproject.toml").write_text(PROJECT.format(name))
        extras = "".join(f"Provides-Extra: {extra}\n" for extra in EXTRAS)
        metadata = METADATA.format(name) + f"{extras}Requires-Dist: {needed}\n"
        facts = f"NAME = {name.replace('-', '_')!r}\nTEXT = {metadata!r}\n"
        (package / "backend.py").write_text(facts + BACKEND)
    with zipfile.ZipFile(folder / "other-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("other-1.dist-info/METADATA", METADATA.format("other"))
        wheel.writestr("other-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("other-1.dist-info/RECORD", "")
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "pip"):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (programs / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    told = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DRY_RUN": "1",
        "PIP_FIND_LINKS": f"{folder}/absent {folder}",
        "PIP_NO_INDEX": "1",
    }
    return subprocess.run(
        ["make", "--no-print-directory", "setup", f"PYTHON={sys.executable}"],
        cwd=folder,
        env=kept | told,
        capture_output=True,
        text=True,
        check=False,
    )


@needs_make
def test_what_pip_remarks_is_not_shown(tmp_path: Path) -> None:
    done = setup(tmp_path, "other")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Setting up .venv (a few minutes, once)\n"


@needs_make
def test_what_pip_cannot_do_is_shown(tmp_path: Path) -> None:
    done = setup(tmp_path, "one-that-is-not-there")
    assert done.returncode
    assert "No matching distribution found for one-that-is-not-there" in done.stderr


def commands(target: str) -> list[str]:
    """Return what make would run for a target, but for setting up."""
    done = subprocess.check_output(
        ["make", "--no-print-directory", "--dry-run", "--old-file=.venv/.installed", target],
        cwd=ROOT,
        text=True,
    )
    return done.splitlines()


@needs_make
def test_all_that_is_run_for_each_edit_is_run_again_before_a_commit() -> None:
    *lint, tests = commands("quick")
    assert lint
    assert set(lint) <= set(commands("check"))
    (every,) = commands("test")
    assert tests.startswith(every)
    folders = tests.removeprefix(every).split()
    core = {f"packages/farthing/tests/{room}" for room in ("budgets", "promises", "traces")}
    assert core | {"packages/farthing-gateway/tests/storage"} <= set(folders)
    assert [name for name in folders if not (ROOT / name).exists()] == []


@needs_make
def test_slow_tests_are_run_in_the_checks() -> None:
    (every,) = commands("test")
    assert f"{every.removesuffix(' --dist loadfile')} -m slow" in commands("check")

"""The figures of `house.toml` are what the code costs, and they only fall."""

import subprocess
import tomllib
from pathlib import Path

import pytest
from price import HOUSE, ROOT, as_toml, kept, measured, risen

TOY = {
    "src/house/__init__.py": "",
    "src/house/room/__init__.py": '"""A room."""\n',
    "src/house/room/one.py": (
        "from dataclasses import dataclass\n\n\n"
        "@dataclass(frozen=True)\nclass Point:\n    x: int\n\n\n"
        "def made() -> Point:\n    from house.room import two\n    return Point(two.wide())\n"
    ),
    "src/house/room/two.py": (
        "from house.room import one\n\n\n"
        "def wide() -> int:\n    return _half() + len(str(one))\n\n\n"
        'def _half() -> int:\n    """Halve it."""\n    return 1\n'
    ),
    "packages/garden/src/garden/shed.py": (
        "import house.room.one\n\n\ndef _uncalled() -> None: ...\n"
    ),
}


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in TOY.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_figures_are_counted_from_the_syntax_tree(toy: Path) -> None:
    assert measured(toy) == {
        "lines": {"garden": 4, "house": 0, "house.room": 22},
        "statements": {"garden": 3, "house": 0, "house.room": 13},
        "total": {
            "records": 1,
            "records_built_once": 1,
            "short_helpers_with_one_caller": 1,
            "modules_with_one_importer": 1,  # `two`; `one` has two
            "circles": 1,
        },
    }


def test_a_total_may_not_rise_whatever_falls() -> None:
    before = {"total": {"records": 5, "circles": 1}}
    assert risen(before, {"total": {"records": 6, "circles": 0}}) == [
        "total of records: 6, 1 more than house.toml allows"
    ]


def test_the_code_costs_no_more_than_house_toml_allows() -> None:
    assert risen(kept(), measured()) == [], "take it from another room, or `git log -- house.toml`"


def test_the_file_is_as_make_ratchet_writes_it() -> None:
    assert HOUSE.read_text() == as_toml(kept())


def test_a_commit_that_raises_a_figure_touches_house_toml_alone() -> None:
    log = _git("log", "--format=%H", "--max-count=30", "--", HOUSE.name)
    if log is None:
        pytest.skip("there is no history of house.toml here")
    for commit in log.split():
        before, after = (_git("show", f"{at}:{HOUSE.name}") for at in (f"{commit}^", commit))
        if before is None or after is None:
            continue
        if risen(tomllib.loads(before), tomllib.loads(after)):
            touched = _git("show", "--format=", "--name-only", commit)
            assert touched is not None
            assert touched.split() == [HOUSE.name], f"{commit} raises a figure"


def _git(*arguments: str) -> str | None:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None

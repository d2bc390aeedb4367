"""What is said of a missing extra can be typed where the package was installed from."""

import json
from pathlib import Path

from farthing.errors import MissingExtraError, install_command

ROOT = Path(__file__).parents[3]


def test_in_a_clone_the_clone_is_installed_again() -> None:
    said = str(MissingExtraError("reading Parquet", "parquet"))
    command = f'in {ROOT}: pip install -e ".[parquet]"'
    assert said == f"reading Parquet needs an optional dependency: {command}"


def test_what_came_from_a_clone_is_installed_from_there(tmp_path: Path) -> None:
    clone, package = tmp_path / "a clone", tmp_path / "site-packages" / "farthing"
    clone.mkdir()
    record = json.dumps({"url": clone.as_uri(), "dir_info": {}})
    assert install_command("ray", package, record) == 'pip install "farthing[ray]"'
    (clone / "pyproject.toml").touch()
    assert install_command("ray", package, record) == f'in {clone}: pip install ".[ray]"'


def test_what_came_from_an_index_is_installed_from_there(tmp_path: Path) -> None:
    package = tmp_path / "src" / "farthing"
    archive = json.dumps({"url": "https://example.org/farthing.whl", "archive_info": {}})
    for record in (None, archive):
        assert install_command("lm", package, record) == 'pip install "farthing[lm]"'

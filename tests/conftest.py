"""What tests of every room may use."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import asyncpg
import numpy as np
import pytest
from chat_server import Endpoint

from farthing.methods.base import Dataset
from farthing.process.generator.generate import generate
from farthing.process.generator.presets import preset
from farthing.storage.migrations import migrate

ROOT = Path(__file__).parents[1]
NUMBERS = count(1)
PRESET = "hotpotqa-llama2-7b"


def make_dataset(n: int, seed: int = 0) -> Dataset:
    """Make questions of a preset, so few that a comparison of them takes a moment."""
    config = preset(PRESET).config
    return Dataset(PRESET, generate(config, n, np.random.default_rng(seed)), config, PRESET)


@pytest.fixture(scope="session")
def small() -> Dataset:
    """Return 300 questions of a preset."""
    return make_dataset(300)


@pytest.fixture(scope="session")
def large() -> Dataset:
    """Return 2,600 questions of a preset."""
    return make_dataset(2_600, seed=1)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Serve chat completions on a local socket; see `models/chat_server.py`."""
    with Endpoint() as server:
        yield server


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked `extras` where a package is missing; fail it where it was asked for."""
    wanted = [package for mark in item.iter_markers("extras") for package in mark.args]
    missing = [package for package in wanted if find_spec(package) is None]
    if missing and item.config.getoption("markexpr").startswith(("extras", "clients")):
        pytest.fail(f"not installed: {', '.join(missing)}", pytrace=False)
    if missing:
        pytest.skip(f"needs {', '.join(missing)}: make check-extras")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Return the address of a server: the one that is named, or a private one."""
    named = os.environ.get("FARTHING_TEST_POSTGRES")
    if named:
        yield named
        return
    script = str(ROOT / ".ci/postgres")
    with TemporaryDirectory(prefix="farthing-postgres-", ignore_cleanup_errors=True) as folder:
        started = subprocess.run(
            [script, "start", folder], capture_output=True, text=True, check=False, timeout=120
        )
        if started.returncode:
            pytest.skip(
                f"{started.stderr.strip()}; name a server in FARTHING_TEST_POSTGRES, such as "
                "postgresql://user@localhost/database"
            )
        yield started.stdout.strip()
        subprocess.run([script, "stop", folder], check=True, timeout=60)


@pytest.fixture
def schema(postgres: str) -> Iterator[str]:
    """Return the address of a schema of its own on the server."""
    name = f"farthing_{os.getpid()}_{next(NUMBERS)}"
    asyncio.run(_execute(postgres, f"CREATE SCHEMA {name}"))
    yield f"{postgres}{'&' if '?' in postgres else '?'}search_path={name}"
    asyncio.run(_execute(postgres, f"DROP SCHEMA {name} CASCADE"))


@pytest.fixture(params=["sqlite", "postgres"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a database without tables is, or will be: a file, or a schema on the server."""
    if request.param == "sqlite":
        return str(tmp_path / "farthing.db")
    return str(request.getfixturevalue("schema"))


@pytest.fixture
def where(bare: str) -> str:
    """Return where a gateway's database is."""
    asyncio.run(migrate(bare))
    return bare


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()

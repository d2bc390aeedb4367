"""Lines of a log that repeat themselves are summed."""

import io
import logging
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from serving import serving, until

from farthing.gateway.repeated_lines import SummedLines

POSTGRES = str(Path(__file__).parents[2] / ".ci/postgres")


def test_lines_that_differ_in_numbers_alone_are_one_and_a_sum() -> None:
    log, written = logging.getLogger("repeated_lines"), io.StringIO()
    log.propagate = False
    handler = SummedLines(window_s=0.2)
    handler.setStream(written)
    log.addHandler(handler)
    for number in range(100):
        log.warning("port %d is away", number)
    log.warning("another")
    try:
        raise ValueError("a secret")  # noqa: TRY301
    except ValueError:
        log.exception("it\nbroke")
    assert written.getvalue() == "port 0 is away\nanother\nit broke: ValueError\n"
    until(lambda: "99 more in 0.2 s, the last of them: port 99 is away\n" in written.getvalue())
    log.warning("port 7 is away")
    assert written.getvalue().endswith("port 99 is away\nport 7 is away\n")
    assert "another\n" in written.getvalue()
    assert "more in 0.2 s, the last of them: another" not in written.getvalue()


def configured(folder: str) -> str:
    """Start a server in a folder; return the configuration of a gateway that records there."""
    started = subprocess.run(
        [POSTGRES, "start", folder], capture_output=True, text=True, check=False
    )
    if started.returncode:
        pytest.skip(started.stderr.strip())
    section = serve_section(database=started.stdout.strip(), workers=2)
    return section + "[record]\nshare = 0.0\n"


@pytest.mark.slow
def test_a_database_that_goes_away_fills_no_log(tmp_path: Path) -> None:
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Endpoint() as stub,
        serving(tmp_path, configured(folder) + models(stub.url)) as running,
    ):
        assert running.chat("large", "x").status == 200
        subprocess.run([POSTGRES, "stop", folder], check=True)
        until(lambda: running.chat("large", "x").status == 503, 20)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            reply = running.chat("large", "x")
            assert (reply.status, reply.json["error"]["code"]) == (503, "database_unavailable")
            assert reply.headers["X-Farthing-Trace"]
        said = running.said()
    assert "Traceback" not in said
    assert "PostgreSQL at" in said
    assert len(said.splitlines()) < 40, said

"""A record of the log is one line, which holds nothing that a client sent."""

import logging
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from chat_server import Endpoint
from gateway_running import models, serve_section
from serving import serving, until

from farthing_gateway.log_lines import in_one_line

POSTGRES = str(Path(__file__).parents[4] / ".ci/postgres")


def test_a_record_is_one_line_without_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("log_lines")
    with in_one_line():
        log.warning("port %d is away", 9)
        try:
            raise ValueError("a secret")  # noqa: TRY301
        except ValueError:
            log.exception("it\nbroke")
    assert capsys.readouterr().err == "port 9 is away\nit broke: ValueError\n"


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
def test_a_database_that_goes_away_is_said_without_tracebacks(tmp_path: Path) -> None:
    with (
        TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        Endpoint() as stub,
        serving(tmp_path, configured(folder) + models(stub.url)) as running,
    ):
        assert running.chat("large", "x").status == 200
        subprocess.run([POSTGRES, "stop", folder], check=True)
        until(lambda: running.chat("large", "x").status == 503, 20)
        reply = running.chat("large", "x")
        assert (reply.status, reply.json["error"]["code"]) == (503, "database_unavailable")
        assert reply.headers["X-Farthing-Trace"]
        said = running.said()
    assert "Traceback" not in said
    assert "PostgreSQL at" in said

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

from farthing.gateway.repeated_lines import SummedLines, about

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


def test_models_whose_names_differ_in_numbers_are_summed_apart_also_at_the_end() -> None:
    log, written = logging.getLogger("repeated_models"), io.StringIO()
    log.propagate = False
    handler = SummedLines(window_s=60)
    handler.setStream(written)
    log.addHandler(handler)
    for number in range(1, 7):
        name = "gpt-5" if number % 3 else "gpt-4"
        log.warning("%s failed: no reply in %d s", name, number, extra=about(name))
    assert written.getvalue().splitlines() == [
        "gpt-5 failed: no reply in 1 s",
        "gpt-4 failed: no reply in 3 s",
    ]
    handler.close()
    assert written.getvalue().splitlines()[2:] == [
        "3 more until the end, the last of them: gpt-5 failed: no reply in 5 s",
        "1 more until the end, the last of them: gpt-4 failed: no reply in 6 s",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_gateway_that_ends_writes_what_it_has_counted(tmp_path: Path, workers: int) -> None:
    names = ("large", "m-1", "m-2")
    text = serve_section(workers=workers) + models("http://127.0.0.1:9/v1", *names)
    priced = text + '"m-1-2026" = { per_second = 0.1 }\n"m-2-2026" = { per_second = 0.1 }\n'
    with serving(tmp_path, priced) as running:
        for name in ("m-1", "m-2", "m-1", "m-2", "m-1", "m-2", "m-2"):
            assert running.chat(name, "x").status == 502
    said = running.said().splitlines()
    assert running.popen.returncode == 0, said
    for name, times in (("m-1", 3), ("m-2", 4)):
        lines = [line for line in said if f"{name} failed: " in line]
        more = [int(line.split()[0]) for line in lines if " more until the end" in line]
        assert len(lines) - len(more) + sum(more) == times, said


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

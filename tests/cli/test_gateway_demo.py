"""`farthing demo --gateway`: two networks behind a gateway, and two days of traffic."""

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import pytest

from farthing.money import nano_from_usd
from farthing_gateway.config import read_config
from farthing_lab.cli import gateway_demo
from farthing_lab.models.embedded import find

Farthing = Callable[..., Any]


def test_its_configuration_is_one_that_a_gateway_takes(tmp_path: Path) -> None:
    gateway_demo._write_config(tmp_path, 8080, 8400)
    config = read_config(tmp_path / gateway_demo.CONFIG)
    assert config.serve.port == 8080
    for name in config.policies["demo"].pool:
        assert find(name).name == name
        assert name in config.models.sections
    [limit] = config.limits
    assert limit.most == nano_from_usd(2.0)


def test_a_demo_that_was_shown_is_not_written_over(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "gateway").mkdir()
    (tmp_path / "gateway" / gateway_demo.CONFIG).write_text("mine")
    assert "name another folder" in refused("demo", "--gateway", "--out", str(tmp_path))
    assert (tmp_path / "gateway" / gateway_demo.CONFIG).read_text() == "mine"


@pytest.mark.slow
def test_two_days_of_traffic_end_in_a_promise_that_saves(
    farthing: Farthing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_demo, "FIRST", 400)
    monkeypatch.setattr(gateway_demo, "SECOND", 60)
    done = farthing("demo", "--gateway", "--end")
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "400 questions cost" in said
    assert "0 replies with a promise" in said
    assert "60 replies with a promise" in said
    saved = [float(number) for number in re.findall(r"saved \$[\d.]+ \((\d+) %\)", said)]
    assert saved[0] == 0 < saved[1]


@pytest.mark.slow
def test_what_ends_the_demo_ends_its_servers(tmp_path: Path) -> None:
    command = "from farthing.cli.main import run; run()"
    demo = subprocess.Popen(
        [sys.executable, "-c", command, "demo", "--gateway", "--out", "shown"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    file = tmp_path / "shown/gateway" / gateway_demo.CONFIG
    try:
        until = time.monotonic() + 120.0
        while not (file.exists() and all(map(listens, ports(file)))):
            assert demo.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        demo.send_signal(signal.SIGTERM)
        _, said = demo.communicate(timeout=60.0)
    finally:
        demo.kill()
    assert demo.returncode == 130
    assert "what was recorded is in" in " ".join(said.split())
    assert not any(map(listens, ports(file)))


def ports(config: Path) -> set[int]:
    """Return the ports of the gateway and of its models."""
    return {
        int(port) for port in re.findall(r"(?:^port = |:)(\d+)", config.read_text(), re.MULTILINE)
    }


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_every_place_of_the_template_is_filled() -> None:
    text = Path(gateway_demo.__file__).parent / "demo_gateway" / gateway_demo.CONFIG
    found = Template(text.read_text())
    assert set(found.get_identifiers()) == {"PORT", "MODELS"}

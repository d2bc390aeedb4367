"""`farthing demo --gateway`: two networks behind a gateway, and two days of traffic."""

import re
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import pytest

from farthing.cli import gateway_demo
from farthing.gateway.config import read_config
from farthing.models.embedded import find
from farthing.money import nano_from_usd

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


def test_every_place_of_the_template_is_filled() -> None:
    text = Path(gateway_demo.__file__).parent / "demo_gateway" / gateway_demo.CONFIG
    found = Template(text.read_text())
    assert set(found.get_identifiers()) == {"PORT", "MODELS"}

"""A model fails again and again: how often it is tried, and for how long it is left alone."""

import time
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import PRICES, UPSTREAM, gateway, serve_section
from policy_running import POLICY, SYSTEM, letter, made_bundle
from serving import total

from farthing_gateway.circuit_breaker import FAILURES, CircuitBreaker


def config(large: str, small: str, cooldown_s: float) -> str:
    """Return a configuration in which small stands in for large."""
    text = serve_section(cooldown_s=cooldown_s) + "[serve.fallbacks]\nlarge = ['small']\n"
    for name, url in (("large", large), ("small", small)):
        text += UPSTREAM.format(name=name, url=url, tries=6).replace("tries = 6", "first_s = 0.01")
    return text + PRICES


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_with_fallbacks_is_tried_twice_and_then_left_alone(
    tmp_path: Path, *, stream: bool
) -> None:
    with (
        Endpoint(faults={"500": 1.0}) as bad,
        Endpoint() as well,
        gateway(tmp_path, config(bad.url, well.url, 2.5)) as running,
    ):
        for at in range(FAILURES):
            assert running.chat("large", "x", stream=stream).status == 200
            assert len(bad.requests) == 2 * (at + 1)
        for _ in range(3):
            assert running.chat("large", "x", stream=stream).status == 200
        assert len(bad.requests) == 2 * FAILURES
        said = running.chat("large", "x").json["farthing"]
        assert [(one["model"], one.get("error")) for one in said["calls"]] == [
            ("large", "cooling"),
            ("small", None),
        ]
        time.sleep(2.6)  # then one request tries it, and finds it as bad
        running.chat("large", "x", stream=stream)
        assert len(bad.requests) == 2 * FAILURES + 2
        running.chat("large", "x", stream=stream)
        assert len(bad.requests) == 2 * FAILURES + 2
        bad.faults = {}
        time.sleep(2.6)  # and then as good
        answered = [running.chat("large", "x").json["farthing"]["answered_by"] for _ in "ab"]
        assert answered == ["large", "large"]
    assert total(str(tmp_path / "gateway.db")).held.calls == 0


def test_zero_seconds_leave_nobody_alone(tmp_path: Path) -> None:
    with (
        Endpoint(faults={"500": 1.0}) as bad,
        Endpoint() as well,
        gateway(tmp_path, config(bad.url, well.url, 0)) as running,
    ):
        for _ in range(FAILURES + 2):
            running.chat("large", "x")
    assert len(bad.requests) == 2 * (FAILURES + 2)


def test_a_failure_that_is_the_requests_own_counts_for_nothing(tmp_path: Path) -> None:
    with Endpoint() as stub, gateway(tmp_path, config(stub.url, stub.url, 60)) as running:
        for _ in range(FAILURES):
            running.chat("large", "x", farthing={"deadline": 1e-9})
        assert running.chat("large", "x").json["farthing"]["answered_by"] == "large"


@pytest.mark.slow
def test_a_policys_model_is_left_alone_as_well(tmp_path: Path) -> None:
    made_bundle(tmp_path)
    with Endpoint(letter, faults={"500": 1.0}) as bad, Endpoint(letter) as well:
        text = config(well.url, bad.url, 60).replace("large = ['small']", "small = ['large']")
        with gateway(tmp_path, text + POLICY) as running:
            replies = [
                running.chat("farthing/letters", SYSTEM, f"number {at}").json["farthing"]
                for at in range(FAILURES + 2)
            ]
    assert len(bad.requests) == 2 * FAILURES
    assert [one["answered_by"] for one in replies] == ["large"] * (FAILURES + 2)
    assert [one.get("error") for one in replies[-1]["calls"]] == ["cooling", None]
    assert {one["promise"] for one in replies} == {"none"}


def test_a_whole_line_that_would_be_left_alone_is_asked(tmp_path: Path) -> None:
    with (
        Endpoint(faults={"500": 1.0}) as bad,
        gateway(tmp_path, config(bad.url, bad.url, 60)) as running,
    ):
        for _ in range(FAILURES - 1):
            running.chat("large", "x")
        failed = running.chat("large", "x")
        assert failed.status == 502
        said = failed.json["error"]["message"]
        assert "large (" in said
        assert "small (" in said
        bad.faults = {}
        assert running.chat("large", "x").status == 200
    breaker = CircuitBreaker(60.0, {"large": ["small"]})
    for _ in range(FAILURES):
        breaker.failed("large")
    assert breaker.ready(["large", "small"]) == ["small"]
    assert breaker.ready(["large"]) == ["large"]


def test_who_is_not_asked_is_not_tried(tmp_path: Path) -> None:
    """A line's first model answers: what follows it is not taken for tried by that request."""
    with Endpoint() as well, Endpoint(faults={"500": 1.0}) as bad:
        text = config(well.url, bad.url, 0.4)
        text = text.replace("large = ['small']", "large = ['small']\nsmall = ['large']")
        with gateway(tmp_path, text) as running:
            for _ in range(FAILURES):
                running.chat("small", "x")
            bad.faults = {}
            time.sleep(0.45)
            assert running.chat("large", "x").json["farthing"]["answered_by"] == "large"
            assert running.chat("small", "x").json["farthing"]["answered_by"] == "small"


def test_latency_counts_from_the_request_to_the_reply(tmp_path: Path) -> None:
    with (
        Endpoint(faults={"500": 1.0}, latency_s=0.15) as bad,
        Endpoint() as well,
        gateway(tmp_path, config(bad.url, well.url, 60)) as running,
    ):
        began = time.monotonic()
        reply = running.chat("large", "x")
        took = time.monotonic() - began
    assert 0.3 <= reply.json["farthing"]["latency_s"] <= took
    assert float(reply.headers["X-Farthing-Latency"]) >= 0.3

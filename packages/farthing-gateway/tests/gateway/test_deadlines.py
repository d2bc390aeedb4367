"""A request's deadline ends all that is done for it, and charges what was sent, once."""

import threading
import time
from pathlib import Path

import pytest
from chat_server import Endpoint
from gateway_running import PRICES, UPSTREAM, gateway, models, serve_section
from serving import marked, total

LEDGER = "gateway.db"
LATE_S = 30
"""When a model answers, far behind each deadline."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("seconds", [2.0, 2.5, 3.0])
def test_at_the_deadline_a_request_is_over_and_charged_once(
    tmp_path: Path, seconds: float, *, stream: bool
) -> None:
    text = serve_section() + models("{url}", tries=6)
    with Endpoint() as stub:
        # The model's own time is over at the same moment.
        text = text.replace("{url}", stub.url).replace("retries", f"timeout_s = {seconds}\nretries")
        with gateway(tmp_path, text) as running:
            assert running.chat("large", "x").status == 200  # all is loaded and connected
            stub.latency_s = LATE_S
            began = time.monotonic()
            reply = running.chat("large", "x", stream=stream, farthing={"deadline": seconds})
            took = time.monotonic() - began
            time.sleep(0.7)  # long enough for another try
    assert (reply.status, reply.json["error"]["code"]) == (504, "deadline_exceeded")
    assert seconds <= took < LATE_S / 2
    assert len(stub.requests) == 2
    assert len(marked(str(tmp_path / LEDGER))) == 1
    balance = total(str(tmp_path / LEDGER))
    assert (balance.settled.calls, balance.held.calls) == (2, 0)


def test_no_fallback_is_asked_after_the_deadline(tmp_path: Path) -> None:
    text = serve_section() + "[serve.fallbacks]\nlarge = ['small']\n"
    with Endpoint(latency_s=LATE_S) as slow, Endpoint() as well:
        text += UPSTREAM.format(name="large", url=slow.url, tries=6)
        text += UPSTREAM.format(name="small", url=well.url, tries=6) + PRICES
        with gateway(tmp_path, text) as running:
            assert running.chat("large", "x", farthing={"deadline": 3.0}).status == 504
    assert (len(slow.requests), len(well.requests)) == (1, 0)
    assert total(str(tmp_path / LEDGER)).settled.calls == 1


@pytest.mark.parametrize("stream", [False, True])
def test_what_never_reached_the_provider_costs_nothing(tmp_path: Path, *, stream: bool) -> None:
    with Endpoint(latency_s=4.0) as stub:
        text = serve_section() + models(stub.url).replace("retries", 'limits = "one"\nretries')
        with gateway(tmp_path, text + "[limits.one]\nconcurrent = 1\n") as running:
            first = threading.Thread(target=running.chat, args=("large", "two words"))
            first.start()
            while not stub.under_way:
                time.sleep(0.01)
            late = running.chat("large", "x", stream=stream, farthing={"deadline": 0.5})
            first.join()
    assert late.status == 504
    assert len(stub.requests) == 1
    assert marked(str(tmp_path / LEDGER)) == []
    balance = total(str(tmp_path / LEDGER))
    assert (balance.settled.calls, balance.settled.nano, balance.held.calls) == (1, 100_000, 0)

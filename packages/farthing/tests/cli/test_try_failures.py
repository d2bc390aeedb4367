"""`farthing try` where a model refuses some requests, or nothing but JSON may be printed."""

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion

from farthing.traces.store import Store

Farthing = Callable[..., Any]
Refused = Callable[..., str]
PRICES = ("--price", "nano=0.1,0.4", "--price", "large=2.5,10")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a table of one model's answers."""
    rows = (f"Ticket {number}.,large,Billing,0.001" for number in range(400))
    path = tmp_path / "tickets.csv"
    path.write_text("\n".join(["prompt,model,response,cost_usd", *rows]) + "\n")
    return path


def asked(endpoint: Endpoint, *more: str, n: int = 300) -> tuple[str, ...]:
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    return (*models, *PRICES, "--max-cost", "1", "--yes", "--sample", str(n), *more)


def answered(body: dict[str, Any]) -> web.Response:
    return web.json_response(completion(body, "Billing"))


@pytest.mark.slow
def test_a_few_requests_that_a_model_refuses_do_not_stop_it(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    def reply(body: dict[str, Any]) -> web.Response:
        text = body["messages"][-1]["content"]
        if body["model"] == "nano" and text.endswith("7."):
            error = {"error": {"message": "invalid prompt"}}
            return web.json_response(error, status=400)
        return answered(body)

    endpoint.reply = reply
    done = farthing("try", log, *asked(endpoint, "--max-loss", "0.3", "--json"))
    found = json.loads(done.out)
    with Store.read(Path("tickets.try.db")) as store:
        traces = list(store.traces())
    refused = [one for one in traces if one.question.endswith("7.")]
    assert len(traces) == 300
    assert f"nano gave no answer to {len(refused)} questions, recorded as such: bad_request" in (
        done.err
    )
    assert "invalid prompt" in done.err
    for trace in traces:
        (call,) = [one for one in trace.calls if one.role == "nano"]
        assert (call.answer is None) is (call.error is not None) is (trace in refused)
    assert found["recommended"]
    assert "300 questions recorded into tickets.try.db" in done.err


@pytest.mark.slow
def test_a_dead_endpoint_stops_it_with_its_first_question(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    endpoint.reply = answered
    nobody = ("--models", "http://127.0.0.1:9/v1#nano", "--reference", f"{endpoint.url}#large")
    began = monotonic()
    done = farthing("try", log, *nobody, *PRICES, "--max-cost", "1", "--yes")
    assert monotonic() - began < 30
    assert done.code == 1
    (stopped,) = [line for line in done.err.splitlines() if line.startswith("stopped: ")]
    assert stopped.startswith("stopped: model 'nano' at http://127.0.0.1:9/v1")
    assert stopped.endswith(": is it running, is the url right?")

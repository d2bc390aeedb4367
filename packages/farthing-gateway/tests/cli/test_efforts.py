"""A lower effort is tried, proved and served beside the client's own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from served_bundle import ask, serving
from thinking_model import logged, messages, thinks

Farthing = Callable[..., Any]


@pytest.mark.slow
def test_a_lower_effort_is_tried_proved_and_served(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path
) -> None:
    log = logged(tmp_path / "tickets.jsonl", 600)
    endpoint.reply = thinks
    front = farthing("recommend", log)
    assert "o4-mini@high" in front.out
    models = ("--models", f"{endpoint.url}#o4-mini@low")
    reached = ("--reference", f"{endpoint.url}#o4-mini@high", "--price", "o4-mini=1,4")
    wanted = ("try", log, *models, *reached, "--max-cost", "90", "--sample", "500", "--yes")
    done = farthing(*wanted)
    assert done.code == 0, done.out + done.err
    assert "o4-mini@high agrees with itself on 25 of 25" in done.out
    assert {one["reasoning_effort"] for one in endpoint.requests} == {"low", "high"}
    bundle = Path(done.out.splitlines()[-1].rpartition(" ")[2])
    with serving(bundle) as url:
        endpoint.requests.clear()
        open_ones = [_ask(url, number) for number in range(600, 640)]
        assert {reply["farthing"]["provenance"] for reply in open_ones} == {"same"}
        assert {reply["farthing"]["promise"] for reply in open_ones} == {"agreement"}
        assert any(reply["farthing"]["answered_by"] == "o4-mini@low" for reply in open_ones)
        efforts = [one["reasoning_effort"] for one in endpoint.requests]
        assert efforts.count("low") >= 20
        endpoint.requests.clear()
        own = _ask(url, 600, reasoning_effort="low", max_completion_tokens=300)
        assert own["farthing"]["promise"] == "none"
        assert "says itself how long to think (low)" in own["farthing"]["says"]
        assert own["usage"]["completion_tokens_details"] == {"reasoning_tokens": 100}
        (sent,) = endpoint.requests
        assert (sent["reasoning_effort"], sent["max_tokens"]) == ("low", 300)


def _ask(url: str, number: int, **more: Any) -> dict[str, Any]:
    return ask(url, {"model": "o4-mini", "messages": messages(number)} | more)

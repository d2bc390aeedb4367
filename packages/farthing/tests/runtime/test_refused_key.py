"""A key that a provider refuses is said where the answer would be."""

import json
from pathlib import Path

import pytest
from aiohttp import web
from chat_server import Endpoint
from sums import farthing, write_job

from farthing.bundle import folder as bundles
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.traces.system import Origin


def test_a_key_that_is_refused_is_said_in_the_answer(
    endpoint: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_job(tmp_path, endpoint.url, questions=1, rounds=3, mode="independent")
    origin = Origin(
        roles=("base", "guide"),
        models=("small", "large"),
        mean_cost_nano=(0, 0),
        horizon=3,
        fingerprint="f",
    )
    bundles.save("bundle", FixedDepthPolicy(2), origin=origin)
    endpoint.reply = lambda body: web.json_response({"error": {"message": "no"}}, status=401)
    assert farthing("ask", "job.toml", "--bundle", "bundle", "What is 1 + 1?", "--json") == 1
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert (answer["answer"], answer["ended_by"], answer["cost_nano"]) == (None, "failure", 0)
    assert "key" in answer["caveats"][0]
    assert "Traceback" not in printed.err

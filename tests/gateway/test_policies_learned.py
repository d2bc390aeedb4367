"""Bundles of methods that read the question or weigh replies: the gateway serves as they replay."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from gateway_running import gateway, models
from policy_running import SYSTEM, config

from farthing.bundle import folder as bundles
from farthing.cli.main import _run as farthing
from farthing.process.batch_replay import replay
from farthing.traces.assemble import load
from farthing.traces.system import as_asked

QUESTIONS, NEW = 600, 24
NANO = {"small": 10_000, "mid": 20_000, "large": 1_000_000}


def asked(at: int) -> str:
    """Return a question; the cheap models are right about sums, and rarely about proofs."""
    return f"{'add these' if at % 2 else 'prove that'} number {at}"


def answers(at: int) -> dict[str, str]:
    """Return what each model says; C and D are wrong."""
    right, rng = "B" if at % 3 else "A", np.random.default_rng(at)
    often = {"small": 0.97 if at % 2 else 0.4, "mid": 0.97 if at % 2 else 0.8, "large": 0.97}
    return {
        name: right if rng.random() < chance else str(rng.choice(["C", "D"]))
        for name, chance in often.items()
    }


def recorded(path: Path, places: range, group: str | None) -> Path:
    """Write traces of questions."""
    lines = []
    for at in places:
        calls = [
            {"round": 1, "role": role, "model": f"{role}-2026", "answer": said}
            | {"cost_usd": NANO[role] / 1e9}
            for role, said in answers(at).items()
        ]
        one = {"id": f"q{at}", "question": asked(at), "gold": ["B" if at % 3 else "A"]}
        more = {"task": "multiple_choice", "independent": True, "calls": calls}
        lines.append(json.dumps(one | more | ({"group": group} if group else {})))
    path.write_text("\n".join(lines) + "\n")
    return path


def say(body: dict[str, Any]) -> web.Response:
    """Answer as was recorded."""
    at = int(body["messages"][-1]["content"].split()[-1])
    return web.json_response(completion(body, f"The answer is {answers(at)[_who(body)]}."))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "alpha"),
    [
        ("v0", "0.2"),
        pytest.param("odar", "0.2", marks=pytest.mark.slow),
        pytest.param("odar-recheck", "0.2", marks=pytest.mark.slow),
        pytest.param("bayesian-orchestration", "0.04", marks=pytest.mark.slow),
        ("lazy", "0.04"),
        pytest.param("sequence", "0.04", marks=pytest.mark.slow),
    ],
)
def test_a_bundle_is_trained_calibrated_and_served_as_it_replays(
    tmp_path: Path, method: str, alpha: str
) -> None:
    """As a day of the gateway's own traffic would be: its group is the policy's name."""
    data = recorded(tmp_path / "traces.jsonl", range(QUESTIONS), "letters")
    new = load(recorded(tmp_path / "new.jsonl", range(QUESTIONS, QUESTIONS + NEW), "letters"))
    made = ["--traces", str(data)]
    out = tmp_path / "bundle"
    assert farthing(["train", *made, "--policy", method, "--out", str(out)]) == 0
    assert farthing(["calibrate", *made, "--bundle", str(out), "--alpha", alpha]) == 0
    bundle = bundles.load(out)
    assert bundle.kappa is not None
    expected = replay(bundle.policy, as_asked(new, bundle.origin), bundle.empty).act(bundle.kappa)
    with Endpoint() as stub:
        stub.reply = say
        with gateway(tmp_path, three(stub, out)) as running:
            for at in range(NEW):
                stub.requests.clear()
                reply = running.chat("farthing/letters", SYSTEM, asked(QUESTIONS + at)).json
                assert reply["farthing"]["promise"] == "split", reply
                spent = sum(NANO[_who(request)] for request in stub.requests)
                assert spent == expected.cost_nano[at]
                given = reply["choices"][0]["message"]["content"][-2]
                assert (given == "AB"[(QUESTIONS + at) % 3 > 0]) == expected.best_correct[at]
    assert len(set(expected.cost_nano.tolist())) > 1  # it tells questions apart


def three(stub: Endpoint, bundle: Path) -> str:
    """Return a configuration of three models."""
    text = config(stub, bundle).replace('["small", "large"]', '["small", "mid", "large"]')
    mid = models(stub.url, "mid").split("[prices]")[0]
    price = '[prices]\n"mid-2026" = { input_per_million = 2, output_per_million = 4 }\n'
    return text.replace("[prices]\n", mid + price)


def _who(request: dict[str, Any]) -> str:
    return str(request["model"].removesuffix("-2026"))

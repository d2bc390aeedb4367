"""A model fails: who answers in its place, what that costs, what is said and recorded of it."""

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from aiohttp import web
from chat_server import Endpoint
from gateway_running import UPSTREAM, gateway, serve_section
from policy_running import POLICY, SYSTEM, letter
from serving import marked, recorded, total, until

from farthing.cli.main import _run as farthing
from farthing_gateway.recording.export import as_pool

RECORD = "[record]\nshare = 0.0\n"
POOL = ("small", "second", "large")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle that asks large where the two cheap models do not agree."""
    folder = tmp_path_factory.mktemp("bundle")
    generator = np.random.default_rng(0)
    lines = []
    for at in range(1_200):
        calls = []
        for role, usd, wrong in (("small", 1e-5, "C"), ("second", 2e-5, "D"), ("large", 1e-3, "")):
            right = not wrong or generator.random() < 0.8
            answer = "AB"[at % 2] if right else wrong
            one = {"round": 1, "role": role, "model": f"{role}-2026", "answer": answer}
            calls.append({**one, "cost_usd": usd})
        question = {"id": f"q{at}", "question": f"number {at}", "gold": ["AB"[at % 2]]}
        kind = {"task": "multiple_choice", "independent": True}
        lines.append(json.dumps({**question, **kind, "calls": calls}))
    (folder / "traces.jsonl").write_text("\n".join(lines) + "\n")
    traces, out = ("--traces", str(folder / "traces.jsonl")), str(folder / "bundle")
    cascade = ("--policy", "agreement-cascade", "--grade", "same as large")
    assert farthing(["train", *traces, *cascade, "--out", out]) == 0
    asked = ("--promise", "agreement", "--epsilon", "0.05", "--delta", "0.1")
    assert farthing(["calibrate", *traces, "--bundle", out, *asked]) == 0
    return folder / "bundle"


def config(bundle: Path, fallbacks: str, at: str, tries: int = 1, **urls: str) -> str:
    """Return a configuration of models at one place, but for some, and of a policy over three."""
    places = dict.fromkeys((*POOL, "other"), at) | urls
    text = f"{serve_section()}[serve.fallbacks]\n{fallbacks}\n"
    text += "".join(UPSTREAM.format(name=n, url=url, tries=tries) for n, url in places.items())
    price = {"small": 1, "second": 2, "large": 100, "other": 50}
    text += "[prices]\n"
    for name, usd in price.items():
        text += f'"{name}-2026" = {{ input_per_million = {usd}, output_per_million = {usd} }}\n'
    policy = POLICY.replace('["small", "large"]', json.dumps(POOL))
    return text + policy.replace('"bundle"', json.dumps(str(bundle)))


def broken() -> Endpoint:
    """Return a provider that fails every time."""
    return Endpoint(letter, faults={"500": 1.0})


def wrong_key() -> Endpoint:
    """Return a provider that takes no key."""
    return Endpoint(reply=lambda _: web.json_response({"error": {"message": "no"}}, status=401))


def said_in(stream: bytes) -> Any:
    """Return the receipt of a stream."""
    (comment,) = re.findall(rb"^: farthing (.*)$", stream, re.MULTILINE)
    return json.loads(comment)


def errors(receipt: Any) -> list[tuple[str, str | None]]:
    """Return who was asked, and how each failed."""
    return [(one["model"], one.get("error")) for one in receipt["calls"]]


def adds_up(receipt: Any, database: str) -> None:
    """Check that a receipt is the sum of its tries, and that the ledger has the same."""
    cost = sum(round(one["cost_usd"] * 1e9) for one in receipt["calls"])
    assert receipt["cost_nano"] == cost == total(database).settled.nano
    assert len(receipt["calls"]) == total(database).settled.calls


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_a_policys_fallback_answers_where_its_models_fail(
    tmp_path: Path, bundle: Path, *, stream: bool
) -> None:
    with broken() as bad, Endpoint(letter) as well:
        fallbacks = "large = ['other']"
        text = config(bundle, fallbacks, bad.url, other=well.url)
        with gateway(tmp_path, text) as running:
            reply = running.chat("farthing/letters", SYSTEM, "number 7", stream=stream)
    assert reply.status == 200
    assert b"The answer is B." in reply.body
    said = said_in(reply.body) if stream else reply.json["farthing"]
    assert errors(said) == [("small", "connection"), ("large", "connection"), ("other", None)]
    assert reply.headers["X-Farthing-Calls"] == "3"
    assert (said["answered_by"], said["promise"], said["certificate"]) == ("other", "none", None)
    assert "large failed, and its fallback other answered in its place" in said["says"]
    assert said["cost_nano"] > 0
    adds_up(said, str(tmp_path / "gateway.db"))
    (asked,) = well.requests
    assert (asked["max_tokens"], asked["temperature"]) == (50, 1.0)
    assert [one["content"] for one in asked["messages"]] == [SYSTEM, "number 7"]


def test_the_policy_itself_replaces_a_model_that_fails(tmp_path: Path, bundle: Path) -> None:
    with broken() as bad, Endpoint(letter) as well, Endpoint(letter) as spare:
        fallbacks = "small = ['other']\nlarge = ['other']"
        text = config(bundle, fallbacks, well.url, small=bad.url, other=spare.url)
        with gateway(tmp_path, text) as running:
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
    assert errors(said) == [("small", "connection"), ("large", None)]
    assert (said["answered_by"], said["promise"]) == ("large", "agreement")
    assert not spare.requests


def unsure() -> Endpoint:
    """Return a provider that says what no other one does."""
    return Endpoint(lambda _: "The answer is C.")


def test_a_fallback_stands_in_for_the_model_that_was_to_decide(
    tmp_path: Path, bundle: Path
) -> None:
    with broken() as bad, unsure() as other, Endpoint(letter) as well:
        fallbacks = "large = ['second', 'other']"
        text = config(bundle, fallbacks, well.url, small=other.url, large=bad.url)
        with gateway(tmp_path, text) as running:
            said = running.chat("farthing/letters", SYSTEM, "number 7").json
    receipt = said["farthing"]
    assert said["choices"][0]["message"]["content"] == "The answer is B."
    answered = [("small", None), ("second", None)]
    assert errors(receipt) == [*answered, ("large", "connection"), ("other", None)]
    assert (receipt["answered_by"], receipt["promise"]) == ("other", "none")
    adds_up(receipt, str(tmp_path / "gateway.db"))


def test_where_such_a_fallback_fails_the_policys_own_reply_stands(
    tmp_path: Path, bundle: Path
) -> None:
    with broken() as bad, unsure() as other, Endpoint(letter) as well:
        text = config(bundle, "large = ['other']", bad.url, small=other.url, second=well.url)
        with gateway(tmp_path, text + RECORD) as running:
            reply = running.chat("farthing/letters", SYSTEM, "number 7")
    assert reply.status == 200
    receipt = reply.json["farthing"]
    assert errors(receipt)[-1] == ("other", "connection")
    assert receipt["answered_by"] in POOL
    adds_up(receipt, str(tmp_path / "gateway.db"))
    (one,) = recorded(tmp_path)
    assert [call.role for call in one.trace.calls] == [*POOL, "other"]
    assert as_pool([one]).models == tuple(sorted(POOL))


def test_a_wrong_key_is_a_failure_that_a_fallback_stands_in_for(
    tmp_path: Path, bundle: Path
) -> None:
    with wrong_key() as bad, Endpoint(letter) as well:
        text = config(bundle, "small = ['other']", well.url, small=bad.url)
        with gateway(tmp_path, text + RECORD) as running:
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
    assert errors(said) == [("small", "authentication"), ("other", None)]
    assert (said["answered_by"], said["promise"]) == ("other", "none")
    (one,) = recorded(tmp_path)
    assert [(call.role, call.error and call.error.type) for call in one.trace.calls] == [
        ("small", "authentication"),
        ("other", None),
    ]


def test_where_the_fallback_fails_as_well_the_client_hears_of_it(
    tmp_path: Path, bundle: Path
) -> None:
    with broken() as bad:
        fallbacks = "small = ['large']\nlarge = ['small', 'other']"
        text = config(bundle, fallbacks, bad.url)
        with gateway(tmp_path, text) as running:
            assert running.chat("farthing/letters", SYSTEM, "number 7").status == 502
    asked = [one["model"] for one in bad.requests]
    assert sorted(asked) == ["large-2026", "other-2026", "small-2026"]  # nobody is asked twice


def test_a_limit_on_the_fallback_is_said(tmp_path: Path, bundle: Path) -> None:
    with broken() as bad, Endpoint(letter) as well:
        text = config(bundle, "large = ['other']", bad.url, other=well.url)
        limit = '[[budgets]]\nof = "model:other"\nper = "day"\ncalls = 0\n'
        with gateway(tmp_path, text + limit) as running:
            refused = running.chat("farthing/letters", SYSTEM, "number 7")
    assert refused.status == 402
    assert "model:other" in refused.json["error"]["message"]
    assert not well.requests


def test_what_a_fallback_said_is_recorded_and_not_learned_from(
    tmp_path: Path, bundle: Path
) -> None:
    with broken() as bad, Endpoint(letter) as well:
        text = config(bundle, "large = ['other']", bad.url, other=well.url)
        with gateway(tmp_path, text + RECORD) as running:
            decided = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            running.chat("large", "Another prompt.", "number 7")
            passed = running.chat("farthing/letters", SYSTEM, "8", farthing={"reliability": 0.999})
    found = {one.trace.question: one for one in recorded(tmp_path) if one.policy}
    first, second = found["number 7"], found["8"]
    assert decided["promise"] == passed.json["farthing"]["promise"] == first.promise == "none"
    *failed, last = first.trace.calls
    assert [call.role for call in failed] == ["small", "large"]
    assert all(call.error is not None and call.answer is None for call in failed)
    assert (last.role, last.model, last.extra) == ("other", "other-2026", {"fallback": 1.0})
    assert last.answer is not None
    assert (
        round(sum(call.cost_usd or 0 for call in first.trace.calls) * 1e9) == (decided["cost_nano"])
    )
    assert [call.role for call in second.trace.calls][:2] == ["large", "other"]
    pool = as_pool([first, second])
    assert pool.models == ("large", "small")
    assert all(call.answer is None for trace in pool.traces for call in trace.calls)


@pytest.mark.parametrize("stream", [False, True])
def test_a_receipt_lists_every_try(tmp_path: Path, bundle: Path, *, stream: bool) -> None:
    with Endpoint(letter, faults={"reset": 1.0}) as bad, Endpoint(letter) as well:
        text = config(bundle, "large = ['other']", well.url, 2, large=bad.url)
        with gateway(tmp_path, text + RECORD) as running:
            reply = running.chat("large", "two words", stream=stream)
    assert reply.status == 200
    said = said_in(reply.body) if stream else reply.json["farthing"]
    assert errors(said) == [("large", "connection"), ("large", "connection"), ("other", None)]
    assert said["answered_by"] == "other"
    assert [one["cost_usd"] > 0 for one in said["calls"]] == [True] * 3
    assert all(one["latency_s"] > 0 for one in said["calls"])
    adds_up(said, str(tmp_path / "gateway.db"))
    assert stream or reply.headers["X-Farthing-Calls"] == "3"
    assert [one.amount.nano for one in marked(str(tmp_path / "gateway.db"))] == [
        round(one["cost_usd"] * 1e9) for one in said["calls"][:2]
    ]
    (one,) = recorded(tmp_path)
    large, other = one.trace.calls
    costs = [round((call.cost_usd or 0) * 1e9) for call in (large, other)]
    assert (large.error and large.error.type, other.error) == ("connection", None)
    assert costs[0] == sum(round(one["cost_usd"] * 1e9) for one in said["calls"][:2])
    assert sum(costs) == said["cost_nano"]


def test_tries_that_failed_count_in_the_budget_of_a_request(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter, faults={"reset": 1.0}) as bad, Endpoint(letter) as well:
        text = config(bundle, "large = ['other']", well.url, 5, large=bad.url)
        with gateway(tmp_path, text) as running:
            once = {"budget": 0.03}  # a try can cost about 0.02
            refused = running.chat("large", "two words", farthing=once, max_tokens=50)
    assert refused.status == 402
    assert "tries that failed took" in refused.json["error"]["message"]
    assert len(bad.requests) == 1
    assert total(str(tmp_path / "gateway.db")).settled.nano <= 30_000_000


def test_a_model_that_failed_is_not_tried_again_in_the_background(
    tmp_path: Path, bundle: Path
) -> None:
    with broken() as bad, Endpoint(letter) as well:
        line, at = "large = ['other']", well.url
        text = config(bundle, line, at, small=bad.url, large=bad.url, fresh=at)
        price = '"fresh-2026" = { input_per_million = 1, output_per_million = 1 }'
        text = text.replace("[prices]\n", f"[prices]\n{price}\n")
        text = text.replace("[policies.letters]\n", '[policies.letters]\ntrial = ["fresh"]\n')
        with gateway(tmp_path, text + RECORD.replace("0.0", "1.0")) as running:
            assert running.chat("farthing/letters", SYSTEM, "number 7").status == 200
            end = time.monotonic() + 10
            while len(well.requests) < 2 and time.monotonic() < end:
                time.sleep(0.02)
    (one,) = recorded(tmp_path)
    roles = [(call.role, call.error is None) for call in one.trace.calls]
    assert roles == [("small", False), ("large", False), ("other", True), ("fresh", True)]
    assert len(bad.requests) == 2  # what it had said would not have been kept


def test_a_trial_asks_a_fallback_that_answered_so_that_the_question_is_whole(
    tmp_path: Path,
) -> None:
    with broken() as bad, Endpoint(letter) as well:
        text = config(tmp_path / "none", "large = ['small']", well.url, large=bad.url)
        trials = "[record]\nshare = 1.0\nusd_per_day = 1.0\n"
        with gateway(tmp_path, text + trials) as running:
            said = running.chat("large", SYSTEM, "number 7").json["farthing"]
            until(lambda: len(well.requests) == 3)
    assert said["answered_by"] == "small"
    pool = as_pool(recorded(tmp_path), POOL)
    assert pool.complete == 1
    answers = {one.role: one.answer for one in pool.traces[0].calls}
    assert answers == {"large": None} | dict.fromkeys(("small", "second"), "The answer is B.")


def test_each_model_that_is_asked_costs_at_most_twice_its_bound(
    tmp_path: Path, bundle: Path
) -> None:
    """As docs/how-to/gateway.md says."""
    with Endpoint(faults={"garbage": 1.0}) as stub:
        with gateway(tmp_path, config(bundle, "large = ['other']", stub.url, 6)) as running:
            assert running.chat("large", "two words", max_tokens=50).status == 502
        asked = [body["model"] for body in stub.requests]
    assert asked == ["large-2026"] * 2 + ["other-2026"] * 2
    charged = [one.amount.nano for one in marked(str(tmp_path / "gateway.db"))]
    assert total(str(tmp_path / "gateway.db")).settled.nano == sum(charged)
    assert len(set(charged)) == 2

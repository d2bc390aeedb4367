"""A policy answers: whose task a request is, who decides, what is promised, what is kept."""

import asyncio
import json
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chat_server import Endpoint
from gateway_running import Running, gateway, models
from policy_running import SYSTEM, config, letter, made_bundle, unproved_bundle
from serving import total, until

from farthing.cli.main import _run as farthing
from farthing.errors import InputError
from farthing_gateway.config import read_config
from farthing_gateway.open_policies import open_policies
from farthing_gateway.recording.traffic_summary import OutsideTask, summarise

RECORD = """
[record]
share = 1.0
usd_per_day = 1.0
at_once = 50
"""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of an agreement."""
    folder = tmp_path_factory.mktemp("bundle")
    made_bundle(folder)
    return folder / "bundle"


def test_a_bundle_decides_and_its_promise_is_kept(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        reply = running.chat("farthing/letters", SYSTEM, "number 7")
        said = reply.json
        assert said["choices"][0]["message"]["content"] == "The answer is B."
        assert said["farthing"]["promise"] == "agreement"
        assert said["farthing"]["answered_by"] == "small"
        assert [one["model"] for one in stub.requests] == ["small-2026"]
        assert [m["content"] for m in stub.requests[0]["messages"]] == [SYSTEM, "number 7"]
        assert said["farthing"]["saved_usd"] > 0
        assert reply.headers["X-Farthing-Promise"] == "agreement"
        assert reply.headers["X-Farthing-Certificate"] == said["farthing"]["certificate"]
        ready = running.get("/ready").json["policies"]["letters"]
        assert ready == {"default": said["farthing"]["certificate"]}


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_policy_saves_is_less_what_it_cost(
    tmp_path: Path, bundle: Path, *, fails: bool
) -> None:
    """Small costs a tenth of large; a try that failed is paid as well."""
    faults = {"cut": 1.0} if fails else {}
    with Endpoint(letter, faults=faults, only_first=True) as stub:
        text = config(stub, bundle).replace("tries = 1", "tries = 2")
        with gateway(tmp_path, text) as running:
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            assert said["answered_by"] == "small"
            database = str(tmp_path / "gateway.db")
            until(lambda: not total(database).held.calls)
            assert said["cost_nano"] == total(database, "policy:letters").settled.nano
    *lost, last = said["calls"]
    assert len(lost) == fails
    would = 10 * round(last["cost_usd"] * 1e9)
    assert round(said["saved_usd"] * 1e9) == would - said["cost_nano"]


def test_clients_change_nothing_but_the_address(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        inside = running.chat("large", SYSTEM, "number 8").json
        assert inside["farthing"]["answered_by"] == "small"
        assert inside["model"] == "large"
        outside = running.chat("large", "Another prompt.", "number 8").json
        assert outside["farthing"]["answered_by"] == "large"
        assert outside["farthing"]["promise"] == "none"


def test_an_asked_model_answers_itself_until_a_bundle_does(tmp_path: Path) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, tmp_path / "none").replace('["large"]', '["small"]')
        with gateway(tmp_path, text) as running:
            said = running.chat("small", SYSTEM, "number 8").json["farthing"]
            assert (said["answered_by"], said["promise"]) == ("small", "none")


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_recorded_of_a_task_is_asked_as_the_task_says(
    tmp_path: Path, *, stream: bool
) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, tmp_path / "none") + RECORD
        with gateway(tmp_path, text) as running:
            assert running.chat("large", SYSTEM, "number 8", stream=stream).status == 200
            _until_asked(stub, 2, running)
    asked = [(one["model"], one["max_tokens"], one["temperature"]) for one in stub.requests]
    assert sorted(asked) == [("large-2026", 50, 1.0), ("small-2026", 50, 1.0)]


@pytest.mark.slow
def test_parity_promises_no_share_of_right_answers(tmp_path: Path) -> None:
    made_bundle(tmp_path, "parity")
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, tmp_path / "bundle")) as running:
        said = running.chat("farthing/letters", SYSTEM, "7").json["farthing"]
        assert said["promise"] == "parity"
        asked = {"reliability": 0.5}
        more = running.chat("farthing/letters", SYSTEM, "7", farthing=asked).json["farthing"]
        assert (more["promise"], more["answered_by"]) == ("none", "large")


def test_a_policy_and_a_model_keep_one_limit_together(tmp_path: Path, bundle: Path) -> None:
    shared = 'limits = "shared"\nurl = '
    with Endpoint(letter, latency_s=0.3) as stub:
        text = config(stub, bundle).replace("url = ", shared) + "[limits.shared]\nconcurrent = 1\n"
        with gateway(tmp_path, text) as running, ThreadPoolExecutor(4) as threads:
            asked = ["farthing/letters", "small"] * 2
            replies = list(threads.map(lambda name: running.chat(name, SYSTEM, "7"), asked))
    assert [reply.status for reply in replies] == [200] * 4
    assert stub.most_under_way == 1


def test_two_sections_of_one_model_are_charged_apart(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, bundle).replace('"large-2026"', '"small-2026"')
        text = text.replace(
            '"small-2026" = { input_per_million = 10, output_per_million = 20 }\n', ""
        )
        # the dear one comes first in the file, the cheap one is asked
        text = text.replace("[models.small]", "[models.other]")
        text = text.replace("[models.large]", "[models.small]")
        with gateway(tmp_path, text.replace("[models.other]", "[models.large]")) as running:
            assert running.chat("farthing/letters", SYSTEM, "7").json["farthing"]["cost_nano"] > 0
    database = str(tmp_path / "gateway.db")
    assert total(database, "model:small").settled.calls == 1
    assert total(database, "model:large").settled.calls == 0


def test_a_damaged_bundle_keeps_no_other_from_being_read(tmp_path: Path, bundle: Path) -> None:
    damaged, folder = tmp_path / "damaged", f"bundle = {json.dumps(str(bundle))}\n"
    modes = f"[policies.letters.modes]\nbad = {json.dumps(str(damaged))}\ngood = "
    text = config(Endpoint(url="http://127.0.0.1:9/v1"), bundle).replace(folder, "")
    (tmp_path / "serve.toml").write_text(f"{text}{modes}{json.dumps(str(tmp_path / 'late'))}\n")
    read = read_config(tmp_path / "serve.toml")
    policy = open_policies(read, read.models.open())[0]["letters"]
    assert not policy.loaded
    damaged.mkdir()
    (damaged / "bundle.json").write_text("{")
    shutil.copytree(bundle, tmp_path / "late")
    with pytest.raises(InputError, match="damaged"):
        policy.load()
    assert list(policy.loaded) == ["good"]
    assert policy.load() == []  # said once, not every two seconds


@pytest.mark.slow
def test_what_is_said_of_one_mode_is_not_said_of_another(tmp_path: Path) -> None:
    unproved_bundle(tmp_path)
    folder = json.dumps(str(tmp_path / "bundle"))
    modes = (
        f"[policies.letters.modes]\nhere = {folder}\nlate = {json.dumps(str(tmp_path / 'no'))}\n"
    )
    with Endpoint(letter) as stub:
        text = config(stub, tmp_path / "bundle").replace(f"bundle = {folder}\n", "") + modes
        with gateway(tmp_path, text) as running:
            said = {
                mode: running.chat("farthing/letters", SYSTEM, "7", farthing=wishes).json
                for mode, wishes in (
                    ("", {}),
                    ("here", {"mode": "here"}),
                    ("late", {"mode": "late"}),
                )
            }
    says = {mode: one["farthing"]["says"] for mode, one in said.items()}
    assert "nothing was proved" in says[""]
    assert "nothing was proved" in says["here"]
    assert says["late"] == "Nothing is promised: no bundle decides here yet."


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


@pytest.mark.parametrize(
    ("system", "fields", "why"),
    [
        ("Another prompt.", {}, "system prompt"),
        (SYSTEM, {"tools": TOOLS}, "more than plain text"),
        (SYSTEM, {"temperature": 0.1}, "temperature"),
        (SYSTEM, {"max_tokens": 7}, "output tokens"),
        (SYSTEM, {"tomorrow": "x"}, "more than plain text"),
    ],
)
def test_a_request_outside_the_task_goes_to_the_strongest_without_a_promise(
    tmp_path: Path, bundle: Path, system: str, fields: Mapping[str, Any], why: str
) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        said = running.chat("farthing/letters", system, "number 7", **fields).json["farthing"]
        assert said["promise"] == "none"
        assert said["certificate"] is None
        assert why in said["says"]
        assert said["answered_by"] == "large"
        assert {name: stub.requests[0][name] for name in fields} == dict(fields)


def test_a_history_is_outside_the_task(tmp_path: Path, bundle: Path) -> None:
    said = [("system", SYSTEM), ("user", "1"), ("assistant", "B"), ("user", "2")]
    messages = [{"role": role, "content": text} for role, text in said]
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        reply = running.post({"model": "farthing/letters", "messages": messages})
        assert "history" in reply.json["farthing"]["says"]
        assert reply.headers["X-Farthing-Outside"] == "history"
        streamed = running.post({"model": "farthing/letters", "messages": messages, "stream": True})
        assert streamed.headers["X-Farthing-Outside"] == "history"
        text = config(stub, bundle).replace(
            "[policies.letters]", "[policies.letters]\noutside = 'refuse'"
        )
    with Endpoint(letter) as stub, gateway(tmp_path, text) as running:
        refused = running.post({"model": "farthing/letters", "messages": messages})
        assert (refused.status, refused.json["error"]["code"]) == (400, "outside_task")


def test_another_model_ends_the_promise(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, bundle).replace('model = "small-2026"', 'model = "small-2027"')
        text = text.replace('"small-2026" =', '"small-2027" =')
        with gateway(tmp_path, text) as running:
            said = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            asked = {"reliability": 0.5}
            sure = running.chat("farthing/letters", SYSTEM, "7", farthing=asked).json["farthing"]
            ready = running.get("/ready").json
    assert (said["promise"], said["answered_by"]) == ("none", "small")  # it goes on deciding
    assert "small-2027" in said["says"]
    assert (sure["promise"], sure["answered_by"]) == ("none", "large")
    assert ready["policies"] == {"letters": {"default": None}}
    (note,) = ready["notes"]
    assert "policy letters" in note
    assert "holds no more" in note
    assert "small-2027" in note


@pytest.mark.slow
def test_a_bundle_of_which_nothing_was_proved_does_not_decide(tmp_path: Path) -> None:
    unproved_bundle(tmp_path)
    with Endpoint(letter) as stub:
        text = config(stub, tmp_path / "bundle").replace(
            'strongest = "large"', 'strongest = "small"'
        )
        with gateway(tmp_path, text) as running:
            said = running.chat("farthing/letters", SYSTEM, "7").json["farthing"]
            ready = running.get("/ready").json
    assert (said["answered_by"], said["promise"]) == ("small", "none")  # not what the bundle asks
    assert "nothing was proved" in said["says"]
    assert ready["policies"] == {"letters": {"default": None}}
    assert "promises nothing" in ready["notes"][0]
    made_bundle(tmp_path)  # nothing is lost by writing over it
    with pytest.raises(AssertionError):
        made_bundle(tmp_path)  # but by writing over what is proved


@pytest.mark.parametrize(
    ("fields", "reason", "said"),
    [
        ({"temperature": 0}, "temperature", "its temperature is 0, and the task's 1"),
        ({"max_tokens": 7}, "limit", "it takes 7 output tokens at most, the task 50"),
        ({"top_p": 0.5}, "parameters", "it sets top_p"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "not text", "more than"),
    ],
)
def test_what_is_nearly_the_task_is_told_and_counted(
    tmp_path: Path, fields: dict[str, Any], reason: str, said: str
) -> None:
    with Endpoint(letter) as stub:
        with gateway(tmp_path, config(stub, tmp_path / "none") + RECORD) as running:
            reply = running.chat("large", SYSTEM, "number 8", **fields).json["farthing"]
            running.chat("large", SYSTEM, "number 9", **fields)
            other = running.chat("large", "Another prompt.", "number 8", **fields).json["farthing"]
            metrics = running.get("/metrics").body.decode()
        assert said in reply["says"]
        assert "farthing/letters" in reply["says"]
        assert "farthing/letters" not in other["says"]
        assert f'farthing_outside_task_total{{policy="letters",reason="{reason}"}} 2.0' in metrics
    found = asyncio.run(summarise(str(tmp_path / "gateway.db")))
    assert found.outside == (OutsideTask("letters", reason, 2),)
    taken = sum(line.requests for line in found.lines if line.policy == "letters")
    assert found.share_outside(found.outside[0]) == 2 / (2 + taken)


def test_trials_that_are_left_out_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, tmp_path / "none") + RECORD.replace("at_once = 50", "at_once = 1")
        with gateway(tmp_path, text) as running:
            stub.latency_s = 1.0
            with ThreadPoolExecutor(6) as threads:
                list(
                    threads.map(lambda at: running.chat("large", SYSTEM, f"number {at}"), range(6))
                )
    assert asyncio.run(summarise(str(tmp_path / "gateway.db"))).trials_left_out == 5
    (line,) = [one.getMessage() for one in caplog.records if "left out" in one.getMessage()]
    assert "at_once under [record]" in line


def test_what_is_asked_for_and_not_proved_is_not_promised(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        proved = running.chat("farthing/letters", SYSTEM, "1", farthing={"reliability": 0.9}).json
        assert proved["farthing"]["promise"] == "agreement"
        for asked, kind in ((0.95, "agreement"), (0.9500001, "none")):  # 0.95 is what was proved
            exact = running.chat("farthing/letters", SYSTEM, "1", farthing={"reliability": asked})
            assert exact.json["farthing"]["promise"] == kind
        more = running.chat("farthing/letters", SYSTEM, "1", farthing={"reliability": 0.999}).json
        assert more["farthing"]["promise"] == "none"
        assert more["farthing"]["answered_by"] == "large"
        budget = running.chat("farthing/letters", SYSTEM, "1", farthing={"budget": 0.003}).json
        assert budget["farthing"]["promise"] == "none"
        unknown = running.chat("farthing/letters", SYSTEM, "1", farthing={"mode": "x"})
        assert unknown.status == 422


def test_a_policy_streams_after_its_decision(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle)) as running:
        reply = running.chat(
            "farthing/letters", SYSTEM, "7", stream=True, stream_options={"include_usage": True}
        )
        assert reply.headers["X-Farthing-Promise"] == "agreement"
        pieces = [json.loads(event) for event in reply.events[:-1]]
        said = "".join(c["delta"].get("content", "") for p in pieces for c in p["choices"])
        assert said == "The answer is B."
        assert pieces[-1]["farthing"]["promise"] == "agreement"
        assert pieces[-1]["usage"]["total_tokens"] > 0


def test_where_every_model_fails_the_client_hears_of_it(tmp_path: Path, bundle: Path) -> None:
    failing = Endpoint(letter, faults={"500": 1.0})
    with failing as stub, gateway(tmp_path, config(stub, bundle)) as running:
        assert running.chat("farthing/letters", SYSTEM, "7").status == 502
        assert running.chat("farthing/letters", SYSTEM, "7", stream=True).status == 502


@pytest.mark.parametrize("limits", ["", "[limits.one]\nconcurrent = 4\n"])
def test_where_every_model_asks_for_a_pause_the_client_hears_how_long(
    tmp_path: Path, bundle: Path, limits: str
) -> None:
    with Endpoint(letter, faults={"429 seconds": 1.0}, retry_after_s=30) as stub:
        text = config(stub, bundle) + limits
        if limits:
            text = text.replace("retries", 'limits = "one"\nretries')
        with gateway(tmp_path, text) as running:
            began = time.monotonic()
            refused = [running.chat("farthing/letters", SYSTEM, "7") for _ in range(2)]
            assert time.monotonic() - began < 20  # nobody is held until the pause is over
    assert [one.status for one in refused] == [429] * 2
    assert all(10 <= int(one.headers["Retry-After"]) <= 30 for one in refused)


def test_a_policy_is_paid_for_by_the_ledger(tmp_path: Path, bundle: Path) -> None:
    text = '[[budgets]]\nof = "policy:letters"\nper = "day"\nusd = 0.001\n'
    with Endpoint(letter) as stub, gateway(tmp_path, config(stub, bundle) + text) as running:
        replies = [running.chat("farthing/letters", SYSTEM, str(at)) for at in range(200)]
        statuses = [reply.status for reply in replies]
        assert set(statuses) == {200, 402}
        assert "policy:letters" in replies[-1].json["error"]["message"]
        spent = sum(r.json["farthing"]["cost_nano"] for r in replies if r.status == 200)
    assert spent <= 1_000_000


@pytest.mark.slow
def test_a_day_of_traffic_becomes_a_bundle_that_the_gateway_finds(tmp_path: Path) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, tmp_path / "bundle") + RECORD
        said: Any = {}
        with gateway(tmp_path, text, watch=True) as running:
            for at in range(400):
                said = running.chat("farthing/letters", SYSTEM, f"number {at}").json
                assert said["farthing"]["answered_by"] == "large"
            _until_asked(stub, 800, running)
            _learn(running)
            end = time.monotonic() + 10
            while said["farthing"]["promise"] == "none":
                assert time.monotonic() < end
                time.sleep(0.1)
                said = running.chat("farthing/letters", SYSTEM, "number 7").json
        assert said["farthing"]["promise"] == "agreement"
        assert said["farthing"]["answered_by"] == "small"
        dearer = text.replace("input_per_million = 1,", "input_per_million = 1.5,")
        with gateway(tmp_path, dearer) as running:
            ended = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            assert ended["promise"] == "none"
            assert "price of small" in ended["says"]
        with gateway(tmp_path, text.replace("max_tokens = 50", "max_tokens = 60")) as running:
            ended = running.chat("farthing/letters", SYSTEM, "number 7").json["farthing"]
            assert "max_tokens of small" in ended["says"]


def _until_asked(stub: Endpoint, n: int, running: Running) -> None:
    end = time.monotonic() + 20
    while len(stub.requests) < n and time.monotonic() < end:
        time.sleep(0.05)
    assert len(stub.requests) == n, running.get("/metrics").body.decode()


def _learn(running: Running) -> None:
    time.sleep(1.0)
    database, out = running.folder / "gateway.db", running.folder / "day.db"
    assert farthing(["traffic", "export", "--database", str(database), "--out", str(out)]) == 0
    asked = ["recommend", "--traces", str(out), "--promise", "agreement", "--reference", "large"]
    assert farthing([*asked, "--out", str(running.folder / "bundle")]) == 0


@pytest.mark.slow
def test_a_pacer_chooses_the_mode_where_a_request_does_not(tmp_path: Path, bundle: Path) -> None:
    folder = json.dumps(str(bundle))
    modes = f"[policies.letters.modes]\nfirst = {folder}\nsecond = {folder}\n"
    paced = "[policies.letters.pacing]\nusd_per_day = 0.01\nrequests = 100\n"
    with Endpoint(letter) as stub:
        text = config(stub, bundle).replace(f"bundle = {folder}\n", "") + modes + paced
        with gateway(tmp_path, text) as running:
            said = running.chat("farthing/letters", SYSTEM, "7").json["farthing"]
            assert (said["mode"], said["promise"]) == ("first", "agreement")
            said = running.chat("farthing/letters", SYSTEM, "7", farthing={"mode": "second"}).json
            assert said["farthing"]["mode"] == "second"
            statuses = [running.chat("farthing/letters", SYSTEM, str(a)).status for a in range(99)]
    assert set(statuses) <= {200, 402}


def test_a_new_model_is_tried_beside_the_pool_before_it_joins(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub:
        text = config(stub, bundle) + RECORD
        pool = 'pool = ["small", "large"]'
        text = text.replace(pool, f'{pool}\ntrial = ["new"]\naudit = 0.0')
        new = models(stub.url, "new").split("[prices]")[0]
        price = '[prices]\n"new-2026" = { input_per_million = 1, output_per_million = 2 }\n'
        with gateway(tmp_path, text.replace("[prices]\n", new + price)) as running:
            said = running.chat("farthing/letters", SYSTEM, "7").json["farthing"]
            assert said["promise"] == "agreement"
            _until_asked(stub, 2, running)
            # the pool's other model is asked by audits alone
            assert {one["model"] for one in stub.requests} == {"small-2026", "new-2026"}


def of_job(folder: Path, stub: Endpoint, bundle: Path) -> str:
    """Return a configuration of a policy whose models are those of a job."""
    (folder / "questions.jsonl").write_text('{"id": "q", "question": "number 1", "gold": ["B"]}\n')
    section = 'task = "multiple_choice"\nquestions = "questions.jsonl"\npool = ["small", "large"]\n'
    (folder / "job.toml").write_text(section + models(stub.url, tries=6))
    text = config(stub, bundle)
    return text.replace('pool = ["small", "large"]', 'job = "job.toml"')


def test_a_jobs_models_are_tried_as_the_gateways_own_are(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter, faults={"garbage": 1.0}) as stub:  # each reply may have to be paid
        with gateway(tmp_path, of_job(tmp_path, stub, bundle)) as running:
            assert running.chat("farthing/letters", SYSTEM, "number 7").status == 502
        assert [one["model"] for one in stub.requests].count("small-2026") == 2
    standing_in = '\n[serve.fallbacks]\nsmall = ["large"]\n'
    with Endpoint(letter, faults={"500": 1.0}) as stub:  # and each of these is free
        with gateway(tmp_path, of_job(tmp_path, stub, bundle) + standing_in) as running:
            assert running.chat("farthing/letters", SYSTEM, "number 7").status == 502
        assert [one["model"] for one in stub.requests].count("small-2026") == 2


def test_a_job_whose_models_answer_by_themselves_has_a_bound(tmp_path: Path, bundle: Path) -> None:
    with Endpoint(letter) as stub:
        (tmp_path / "serve.toml").write_text(of_job(tmp_path, stub, bundle))
        read = read_config(tmp_path / "serve.toml")
        found = open_policies(read, {})[0]["letters"]
        assert found.tries == 2

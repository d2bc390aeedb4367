"""`farthing collect`: prices, collects, goes on, and says what is left."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion

from farthing.runtime.collect import CollectionProgress
from farthing.traces.base import Call, CallError
from farthing.traces.store import Store

Farthing = Callable[..., Any]
Refused = Callable[..., str]
JOB = """
task = "text"
questions = "questions.jsonl"
pool = ["small", "large"]
at_once = 1
[models.small]
provider = "openai-compatible"
model = "small"
url = "URL"
retries = { tries = 1 }
[models.large]
provider = "openai-compatible"
model = "large"
url = "URL"
[prices.small]
input_per_million = 1
output_per_million = 2
[prices.large]
input_per_million = 5
output_per_million = 10
"""


def write(folder: Path, job: str, n: int = 5) -> None:
    lines = [json.dumps({"id": f"q{k}", "question": f"Number {k}?", "gold": "4"}) for k in range(n)]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    (folder / "job.toml").write_text(job)


ARGUMENTS = ("collect", "job.toml", "--store", "a.db", "--max-cost")


def test_price_collect_and_again(farthing: Farthing, endpoint: Endpoint, tmp_path: Path) -> None:
    write(tmp_path, JOB.replace("URL", endpoint.url))
    priced = farthing(*ARGUMENTS, "5.00", "--dry-run")
    assert priced.code == 0
    assert "5 questions left, at most 10 calls to models" in priced.out
    assert "likely   unknown" in priced.out
    assert "allowed  $5.0000 of $5.0000" in priced.out
    assert endpoint.requests == []
    done = farthing(*ARGUMENTS, "5.00")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("5 questions recorded into a.db, 0 were there; $")
    again = farthing(*ARGUMENTS, "5.00")
    assert again.out.startswith("0 questions recorded into a.db, 5 were there; $")
    assert len(endpoint.requests) == 10
    write(tmp_path, JOB.replace("URL", endpoint.url), 6)
    more = farthing(*ARGUMENTS, "5.00", "--dry-run")
    assert "1 question left, at most 2 calls" in more.out
    assert "likely   $0." in more.out
    info = farthing("traces", "info", "a.db")
    assert "questions 5" in info.out


ALONE = JOB.replace(
    'pool = ["small", "large"]',
    'mode = "independent"\nrounds = 2\nagents.base.model = "small"\nagents.guide.model = "large"',
)


def test_a_dry_run_says_nothing_where_each_is_asked_once(
    farthing: Farthing, tmp_path: Path
) -> None:
    write(tmp_path, ALONE.replace("URL", "http://localhost:1/v1"))
    priced = farthing(*ARGUMENTS, "5", "--dry-run")
    assert (priced.code, priced.err) == (0, "")
    assert "at most 20 calls to models" in priced.out


def test_what_is_left_is_said(farthing: Farthing, endpoint: Endpoint, tmp_path: Path) -> None:
    write(tmp_path, JOB.replace("URL", endpoint.url))
    poor = farthing(*ARGUMENTS, "0.015")
    assert poor.code == 1
    assert "of $0.0150 spent" in poor.out
    assert "stopped: the next call can cost $0." in poor.err
    assert "raise the cap to go on, with a larger --max-cost" in poor.err
    assert "questions left to do: run the same command again" in poor.err
    endpoint.faults = {"500": 1.0}
    failing = JOB.replace("URL", endpoint.url).replace('["small", "large"]', '["small"]')
    write(tmp_path, failing)
    failed = farthing("collect", "job.toml", "--store", "b.db", "--max-cost", "5")
    assert failed.code == 1
    assert "5 questions failed; the next run asks again:\n  q0 and 4 more: round 1" in failed.err


SCRIPTED = """
task = "text"
questions = "questions.jsonl"
pool = ["small"]
at_once = 1
models.small = { provider = "scripted", otherwise = "SAID" }
"""


def unread(farthing: Farthing, folder: Path, n: int, said: str) -> list[str]:
    """Collect n questions with a model that always says the same; return what is warned of."""
    write(folder, SCRIPTED.replace("SAID", said), n)
    done = farthing(*ARGUMENTS, "5")
    assert done.code == 0
    assert done.out.startswith(f"{n} questions recorded")
    return list(done.err.splitlines())


def test_ten_answers_that_cannot_be_read_are_warned_of_once(
    farthing: Farthing, tmp_path: Path
) -> None:
    (line,) = unread(farthing, tmp_path, 12, "I cannot tell")
    said = "10 of small's 10 replies so far cannot be read, the first of them 'I cannot tell'"
    assert line.startswith(f"warning: {said}: they may be cut off at max_tokens")


def test_nine_are_not_warned_of(farthing: Farthing, tmp_path: Path) -> None:
    assert unread(farthing, tmp_path, 9, "I cannot tell") == []


def test_workers_count_together_what_cannot_be_read() -> None:
    def part(*answers: str | None) -> CollectionProgress:
        progress = CollectionProgress(len(answers))
        progress.note(Call(round=1, role="m", answer=answer, text="?") for answer in answers)
        return progress

    both = part("4", None).plus(part(None, "4", None))
    assert (both.replies, both.unread, both.examples) == ({"m": 5}, {"m": 3}, {"m": "?"})
    failed = Call(round=1, role="m", error=CallError(type="timeout", message="late"))
    both.note([failed])
    assert both.replies == {"m": 5}


def test_a_question_without_an_accepted_answer_is_asked(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path
) -> None:
    """Agreement with a model needs none."""
    write(tmp_path, JOB.replace("URL", endpoint.url))
    (tmp_path / "questions.jsonl").write_text('{"id": "q0", "question": "What is up?"}')
    assert farthing(*ARGUMENTS, "5").code == 0
    with Store.read(tmp_path / "a.db") as store:
        assert next(store.traces()).gold == []


def test_a_provider_that_overcharges_is_reported_and_asked_no_more(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path
) -> None:
    def dear(body: dict[str, Any]) -> web.Response:
        reply = completion(body, "Answer: 4")
        reply["usage"] = {"prompt_tokens": 10**6, "completion_tokens": 1, "total_tokens": 1}
        return web.json_response(reply)

    endpoint.reply = dear
    write(tmp_path, JOB.replace("URL", endpoint.url).replace('["small", "large"]', '["small"]'))
    done = farthing(*ARGUMENTS, "5")
    assert done.code == 1
    assert len(endpoint.requests) == 1
    assert "$1.0000 of $5.0000 spent" in done.out
    assert "a provider charged $0.99" in done.err
    assert "correct the model's line under [prices]" in done.err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("pool", "pol"), "job.toml, pol: is unknown; there are agents"),
        (('"large"]', '"huge"]'), "models: lacks a section [models.huge]"),
        (('["small", "large"]', '["small", "small"]'), "pool: names a model twice"),
        (('pool = ["small", "large"]', ""), "agents: give either agents or a pool"),
        (("at_once = 1", "at_once = 0"), "at_once: must be a whole number, at least 1"),
        (("at_once = 1", '[agents.base]\nmodel = "small"'), "give either agents or a pool"),
        (("[prices.small]", "[prices.tiny]"), 'under [prices], in USD, add for instance: "small"'),
        (('task = "text"', 'task = "txet"'), "did you mean 'text'"),
        (("questions.jsonl", "absent.jsonl"), "absent.jsonl"),
    ],
)
def test_a_wrong_job_is_one_line(
    refused: Refused, endpoint: Endpoint, tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    write(tmp_path, JOB.replace("URL", endpoint.url).replace(*change))
    assert says in refused(*ARGUMENTS, "5")
    assert endpoint.requests == []


def test_what_is_not_there_is_named(refused: Refused, endpoint: Endpoint, tmp_path: Path) -> None:
    said = refused(*ARGUMENTS, "5")
    assert said == "farthing: job.toml: there is no such file; check the path\n"
    write(tmp_path, JOB.replace("URL", endpoint.url))
    said = refused("collect", "job.toml", "--store", "no/a.db", "--max-cost", "5")
    assert said == "farthing: no/a.db: its folder does not exist; make it first\n"


@pytest.mark.parametrize("amount", ["lots", "-1", "nan", "10000000"])
def test_a_wrong_amount_is_refused(refused: Refused, amount: str) -> None:
    assert "--max-cost" in refused(*ARGUMENTS, amount)

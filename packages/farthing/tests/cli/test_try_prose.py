"""`farthing try` on prose: a judge compares the answers, and is priced, capped and checked."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion

from farthing import load
from farthing.traces.store import Store

Farthing = Callable[..., Any]
Refused = Callable[..., str]
SYSTEM = "You answer customers of a shop."
PRICES = ("--price", "nano=0.1,0.4", "--price", "large=2.5,10", "--price", "judge=0.1,0.4")
KINDS = ("parcel", "refund", "crash")


def kind_of(number: int) -> str:
    return KINDS[number % 3]


def prose(kind: str, how: str) -> str:
    case = f"your case is about the {kind}, and a colleague is on it now."
    return f"{how}, we have looked into it: {case}"


def reply(body: dict[str, Any]) -> web.Response:
    """Answer as the models do: nano says the same in other words, but errs on every tenth."""
    text = body["messages"][-1]["content"]
    if body["model"] == "judge":
        said = re.findall(r"about the (\w+)", text)
        return web.json_response(completion(body, "Yes." if said[-1] == said[-2] else "No."))
    number = int(re.findall(r"\d+", text)[0])
    kind = kind_of(number)
    if body["model"] == "nano" and number % 10 == 0:
        kind = KINDS[(number + 1) % 3]
    how = "Dear customer" if body["model"] == "large" else "Hello"
    return web.json_response(completion(body, prose(kind, how)))


@pytest.fixture
def log(tmp_path: Path, endpoint: Endpoint) -> Path:
    endpoint.reply = reply
    path = tmp_path / "mails.jsonl"
    with path.open("w") as file:
        for number in range(400):
            said = [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"Mail {number}: where is my {kind_of(number)}?"},
            ]
            answer = {"role": "assistant", "content": prose(kind_of(number), "Good morning")}
            record = {
                "object": "chat.completion",
                "created": 1_760_000_000 + 600 * number,
                "model": "large",
                "messages": said,
                "request": {"model": "large", "messages": said, "temperature": 0},
                "choices": [{"index": 0, "message": answer, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 30, "completion_tokens": 25, "total_tokens": 55},
            }
            file.write(json.dumps(record) + "\n")
    return path


def asked(endpoint: Endpoint, *more: str, n: int = 40) -> tuple[str, ...]:
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    return (*models, *PRICES, "--sample", str(n), *more)


def models_asked(endpoint: Endpoint) -> list[str]:
    return [request["model"] for request in endpoint.requests]


def test_prose_names_the_option(refused: Refused, endpoint: Endpoint, log: Path) -> None:
    said = refused("try", log, *asked(endpoint, "--max-cost", "1", "--yes"))
    assert "name a model that says which are the same with --judge PROVIDER/MODEL" in said
    assert endpoint.requests == []


@pytest.mark.slow
def test_the_judge_is_in_the_price_and_named_before_anybody_is_asked(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    def likely(*judge: str) -> float:
        done = farthing("try", log, *asked(endpoint, "--max-cost", "1", "--task", "text", *judge))
        assert done.code == 2
        assert ("judge compares each answer with the logged one" in done.err) is bool(judge)
        return float(re.findall(r"likely \$([\d.]+), at most", done.err)[0])

    judged = likely("--judge", f"{endpoint.url}#judge")
    assert judged > 1.3 * likely()
    assert endpoint.requests == []


def verdicts() -> dict[int, dict[str, bool | None]]:
    with Store.read("mails.try.db") as store:
        return {
            int(re.findall(r"\d+", trace.question)[0]): {c.role: c.correct for c in trace.calls}
            for trace in store.traces()
        }


def priced(err: str) -> tuple[float, float]:
    likely, most = re.findall(r"likely \$([\d.]+), at most \$([\d.]+)", err)[-1]
    return float(likely), float(most)


@pytest.mark.slow
def test_a_judge_that_thinks_is_priced_with_its_thoughts(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    def price(judge: str) -> tuple[float, float]:
        free = ("--price", "large=0,0", "--price", "nano=0,0")
        named = ("--judge", f"{endpoint.url}#{judge}", *free)
        return priced(farthing("try", log, *asked(endpoint, "--max-cost", "9", *named)).err)

    thoughts = 43 * 25_000 * 0.4 / 1e6  # 40 answers, 2 second ones, 1 to another request
    likely, most = price("judge@high")
    assert most == pytest.approx(price("judge")[1] + thoughts, rel=0.01)
    assert thoughts < likely < most
    assert price("judge")[0] < 0.01


@pytest.mark.slow
def test_what_the_judge_was_paid_for_is_not_announced_again(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    judge = ("--judge", f"{endpoint.url}#judge", "--max-cost", "1", "--yes")
    first = farthing("try", log, *asked(endpoint, *judge))
    assert min(priced(first.err)) > 0
    again = farthing("try", log, *asked(endpoint, *judge))
    assert priced(again.err) == (0, 0)


@pytest.mark.slow
def test_what_the_judge_says_is_what_is_right(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    judge = ("--judge", f"{endpoint.url}#judge", "--max-cost", "1", "--yes")
    done = farthing("try", log, *asked(endpoint, *judge))
    assert "judge calls large's second answers the same on 2 of 2" in done.err
    assert "judge calls answers to other requests the same on" in done.err
    assert "note: right means that judge calls it the same as large's answer" in done.err
    right = verdicts()
    assert len(right) == 40
    assert all(of["large"] for of in right.values())
    assert {number for number, of in right.items() if not of["nano"]} == {
        number for number in right if number % 10 == 0
    }
    before = len(endpoint.requests)
    again = farthing("try", log, *asked(endpoint, *judge))
    assert len(endpoint.requests) == before, "nothing is paid twice"
    assert "judge calls large's second answers the same on 2 of 2" in again.err


@pytest.mark.slow
def test_the_cap_holds_the_judge_too(
    farthing: Farthing, refused: Refused, endpoint: Endpoint, log: Path
) -> None:
    judge = ("--judge", f"{endpoint.url}#judge", "--yes")
    dear = ("--price", "judge=100,100")
    short = farthing("try", log, *asked(endpoint, *judge, *dear, "--max-cost", "0.5"))
    said = models_asked(endpoint).count("judge")
    assert short.code == 1
    assert 0 < said < 40
    assert "the judge was not asked everything" in short.err
    assert "larger --max-cost" in short.err
    left = refused("recommend", "mails.try.db")
    assert re.search(r"mails.try.db: judge was not asked yet about \d+ answers", left)
    assert "farthing try ... --judge" in left
    farthing("try", log, *asked(endpoint, *judge, *dear, "--max-cost", "9"))
    assert models_asked(endpoint).count("judge") == 43, "what it said is not asked again"
    assert farthing("recommend", "mails.try.db").code in {0, 1}


@pytest.mark.slow
def test_the_judge_is_asked_of_all_that_the_store_has(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    rest = ("--max-cost", "1", "--yes")
    farthing("try", log, *asked(endpoint, "--task", "text", *rest, n=60))
    assert {of["nano"] for of in verdicts().values()} == {None}
    judge = ("--judge", f"{endpoint.url}#judge")
    done = farthing("try", log, *asked(endpoint, *judge, *rest))
    assert done.code in {0, 1}, done.err
    assert len(verdicts()) == 60
    assert {of["nano"] for of in verdicts().values()} == {True, False}
    assert models_asked(endpoint).count("judge") == 63


@pytest.mark.slow
def test_another_judge_may_follow_one_that_said_nothing(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    def silent(body: dict[str, Any]) -> web.Response:
        return web.json_response(completion(body, "")) if body["model"] == "other" else reply(body)

    endpoint.reply = silent
    rest = ("--price", "other=1,1", "--max-cost", "1", "--yes")
    done = farthing("try", log, *asked(endpoint, "--judge", f"{endpoint.url}#other", *rest))
    assert done.code == 2
    assert (
        "none of the first 20 replies of the judge other is yes or no (they are empty)" in done.err
    )
    assert models_asked(endpoint).count("other") < 36
    done = farthing("try", log, *asked(endpoint, "--judge", f"{endpoint.url}#judge", *rest))
    assert "judge calls large's second answers the same on 2 of 2" in done.err


@pytest.mark.slow
def test_another_judge_of_the_same_answers_is_refused(
    farthing: Farthing, refused: Refused, endpoint: Endpoint, log: Path
) -> None:
    rest = ("--max-cost", "1", "--yes")
    farthing("try", log, *asked(endpoint, "--judge", f"{endpoint.url}#judge", *rest))
    said = refused("try", log, *asked(endpoint, "--task", "text", *rest))
    assert "mails.try.db: judge judged the answers that are there" in said


@pytest.mark.slow
def test_a_proof_says_who_judged(farthing: Farthing, endpoint: Endpoint, log: Path) -> None:
    judge = ("--judge", f"{endpoint.url}#judge", "--max-cost", "5", "--yes", "--max-loss", "0.2")
    done = farthing("try", log, *asked(endpoint, *judge, n=400))
    assert done.code == 0, done.err
    certificate = load("mails-bundle-1").certificate
    assert certificate is not None
    assert "Right is what judge calls the same as large's answer" in certificate.conditional_on[-1]


@pytest.mark.slow
def test_what_the_judge_did_not_say_is_unknown_and_counts_at_worst(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    def unsure(body: dict[str, Any]) -> web.Response:
        number = int((re.findall(r"Mail (\d+)", body["messages"][-1]["content"]) or ["1"])[0])
        if body["model"] == "judge" and number % 7 == 0:
            return web.json_response(completion(body, "Perhaps."))
        if body["model"] == "nano" and number % 7 == 1:
            return web.json_response(completion(body, " "))
        return reply(body)

    endpoint.reply = unsure
    judge = ("--judge", f"{endpoint.url}#judge", "--max-cost", "5", "--yes", "--json")
    done = farthing("try", log, *asked(endpoint, *judge, n=400))
    assert re.search(r"judge said neither yes nor no \d+ times; .* counts them at worst", done.err)
    said = verdicts()
    assert {of["nano"] for number, of in said.items() if number % 7 == 0} == {None}
    assert {of["nano"] for number, of in said.items() if number % 7 == 1} == {None}
    assert {of["nano"] for number, of in said.items() if number % 70 == 2} == {True}
    assert all(of["large"] for of in said.values())
    found = json.loads(done.out[done.out.index("{") :])["recommended"]
    assert found["certificate"]["promise"]["kind"] == "parity"
    nano = found["models"]["nano"]
    assert 0.5 < nano["accuracy"] < 0.75, (
        "of seven one is unknown, one failed, and a tenth is other"
    )


@pytest.mark.slow
def test_a_second_answer_that_is_blank_is_not_the_same(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    def silent(body: dict[str, Any]) -> web.Response:
        return web.json_response(completion(body, " ")) if body["model"] == "large" else reply(body)

    endpoint.reply = silent
    judge = ("--judge", f"{endpoint.url}#judge", "--max-cost", "5", "--yes")
    done = farthing("try", log, *asked(endpoint, *judge))
    assert "judge calls large's second answers the same on 0 of 2" in done.err

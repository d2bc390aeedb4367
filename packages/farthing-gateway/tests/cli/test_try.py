"""`farthing try`: from a log of one model to a bundle that is served, and what it refuses."""

import json
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from chat_server import Endpoint, completion
from served_bundle import ask, serving
from ticket_tables import COLUMNS, written

from farthing.errors import InputError
from farthing.recommendation import losses
from farthing_gateway.quick_config import config_file

Farthing = Callable[..., Any]
Refused = Callable[..., str]
SYSTEM = "Answer with one word: billing, technical or account."
LABELS = ("billing", "technical", "account")
PRICES = ("--price", "nano=0.1,0.4", "--price", "large=2.5,10")


def label(text: str) -> str:
    return next(one for one in LABELS if one in text)


def answer(body: dict[str, Any]) -> str:
    """Answer as the model is: nano errs where the ticket is complicated, half of the time."""
    text = body["messages"][-1]["content"]
    right = label(text)
    if body["model"] == "nano" and "complicated" in text and random.Random(text).random() < 0.5:
        return LABELS[LABELS.index(right) - 1]
    return right.capitalize()


def messages(number: int) -> list[dict[str, str]]:
    drawn = random.Random(number)
    hard = " It is complicated and long." if drawn.random() < 0.2 else ""
    text = f"Ticket {number} about {drawn.choice(LABELS)}.{hard}"
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write stored completions of OpenAI, one model's."""
    path = tmp_path / "tickets.jsonl"
    with path.open("w") as file:
        for number in range(600):
            said = messages(number)
            reply = {"role": "assistant", "content": label(said[-1]["content"]).capitalize()}
            record = {
                "object": "chat.completion",
                "created": 1_760_000_000 + 600 * number,
                "model": "large",
                "messages": said,
                "request": {"model": "large", "messages": said, "temperature": 0},
                "choices": [{"index": 0, "message": reply, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42},
            }
            file.write(json.dumps(record) + "\n")
    return path


@pytest.mark.slow
def test_nobody_is_asked_without_a_yes(farthing: Farthing, endpoint: Endpoint, log: Path) -> None:
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    done = farthing("try", log, *models, *PRICES, "--max-cost", "1", "--sample", "20")
    assert done.code == 2
    assert "20 of 600 logged requests, drawn alike, go to nano" in done.err
    assert "logged texts go to 127.0.0.1:" in done.err
    assert "price    likely $0.000" in done.err
    assert done.err.splitlines()[-1].startswith("farthing: nobody is here to ask; give --yes")
    assert endpoint.requests == []


def test_what_is_left_out_and_what_cannot_be_served_is_said_first(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row in rows[:150]:
        row["request"]["tools"] = [{"type": "function", "function": {"name": "look_up"}}]
    for row in rows[300:]:
        row["messages"][0]["content"] = row["request"]["messages"][0]["content"] = "Be brief."
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    done = farthing("try", log, *models, *PRICES, "--max-cost", "1", "--sample", "40")
    assert "150 of 600 requests (25.0%) are left out, as they cannot be asked again" in done.err
    assert "note: a gateway could not serve what is proved of this sample: the requests have " in (
        done.err
    )
    assert endpoint.requests == []


def test_a_price_that_nobody_knows_is_asked_for(
    refused: Refused, endpoint: Endpoint, log: Path
) -> None:
    said = refused("try", log, "--models", f"{endpoint.url}#nano", "--max-cost", "1", "--yes")
    assert "give --price nano=IN,OUT" in said


def test_a_bundle_of_no_try_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    with pytest.raises(InputError, match=r"bundle\.serve\.toml does not say how a bundle"):
        config_file(tmp_path / "bundle")


@pytest.mark.slow
def test_each_proof_on_the_same_questions_spends_less(
    farthing: Farthing, endpoint: Endpoint, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.reply = _json
    looks = []

    def at_losses(*_: Any, look: Any, **__: Any) -> None:
        looks.append(look)
        raise InputError("seen")

    monkeypatch.setattr(losses, "at_losses", at_losses)
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    rest = ("--max-cost", "1", "--sample", "40", "--yes")
    for loss in ("0.05", "0.05", "0.1", "0.2"):
        farthing("try", log, *models, *PRICES, *rest, "--max-loss", loss)
    shares = [Fraction(3, 5) / k**2 for k in (1, 2, 3, 4)]
    assert looks == [(k, shares[k - 1], shares[k]) for k in (1, 1, 2, 3)]


@pytest.mark.slow
def test_two_commands_lead_to_a_gateway_that_keeps_the_promise(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    endpoint.reply = _json
    front = farthing("recommend", log)
    assert front.out.splitlines()[-1].startswith("Next: farthing try ")
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    done = farthing("try", log, *models, *PRICES, "--max-cost", "1", "--sample", "500", "--yes")
    assert done.code == 0, done.err
    assert "500 questions recorded into tickets.try.db" in done.out
    assert "large agrees with itself on 25 of 25" in done.out
    assert "proof 1" not in done.out
    *_, following = done.out.splitlines()
    assert following == "Next: farthing serve tickets-bundle-1"
    again = farthing("recommend", "tickets.try.db", "--max-loss", "0.05", "--json")
    assert json.loads(again.out)["proof"] == 1, "the same proof of the same questions"
    assert (
        json.loads(farthing("recommend", "tickets.try.db", "--max-loss", "0.1", "--json").out)[
            "proof"
        ]
        == 2
    )
    replies = _served(Path(following.rpartition(" ")[2]), range(600, 640))
    assert {reply["farthing"]["provenance"] for reply in replies} == {"same"}
    assert {reply["farthing"]["promise"] for reply in replies} == {"agreement"}
    assert any(reply["farthing"]["answered_by"] == "nano" for reply in replies)


def _json(body: dict[str, Any]) -> web.Response:
    return web.json_response(completion(body, answer(body)))


def _served(bundle: Path, numbers: range) -> list[dict[str, Any]]:
    """Run `farthing serve BUNDLE` and ask it each ticket."""
    with serving(bundle) as url:
        return [
            ask(url, {"model": "large", "messages": messages(number), "temperature": 0})
            for number in numbers
        ]


def test_a_model_that_the_endpoint_lacks_is_said_once(
    farthing: Farthing, endpoint: Endpoint, log: Path
) -> None:
    error = {"error": {"message": "The model `nano` does not exist", "code": "model_not_found"}}
    endpoint.reply = lambda _: web.json_response(error, status=404)
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    asked = ("--max-cost", "1", "--yes", "--sample", "20")
    done = farthing("try", log, *models, *PRICES, *asked)
    assert done.code == 2
    assert done.err.count("does not exist") == 1
    assert "and 19 more: round 1, nano: bad_request:" in done.err
    assert "nano: 20 x bad_request, $0.0000\n" in done.err


@pytest.mark.slow
@pytest.mark.parametrize(("odd", "left"), [(6, True), (60, False)])
def test_a_few_other_system_prompts_are_left_out(
    farthing: Farthing, endpoint: Endpoint, log: Path, odd: int, left: bool
) -> None:
    lines = log.read_text().splitlines()
    changed = [line.replace(SYSTEM, "Be brief.") for line in lines[:odd]]
    log.write_text("\n".join([*changed, *lines[odd:]]))
    models = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#large")
    said = farthing("try", log, *models, *PRICES, "--max-cost", "1").err
    note = f"{odd} of 600 requests (1.0%) are left out, as their system prompt is not that of"
    assert (note in said) is left
    assert ("600 of 600 logged requests" in said) is not left
    assert ("594 of 600 logged requests" in said) is left
    assert ("could not serve what is proved" in said) is not left
    assert endpoint.requests == []


@pytest.mark.slow
def test_clients_go_on_asking_for_the_name_that_the_log_has(
    farthing: Farthing, endpoint: Endpoint, tmp_path: Path
) -> None:
    header = (*COLUMNS, "system_prompt", "temperature")
    table = written(tmp_path / "plain.csv", header, ("One word.", "0"))
    endpoint.answer = lambda _: "Billing"
    prices = ("--price", "nano=0.1,0.4", "--price", "big=2.5,10")
    asked = ("--models", f"{endpoint.url}#nano", "--reference", f"{endpoint.url}#big", *prices)
    done = farthing("try", table, *asked, "--max-cost", "1", "--max-loss", "0.3", "--yes")
    assert done.code == 0, done.err
    said = [{"role": "system", "content": "One word."}, {"role": "user", "content": "Ticket 7?"}]
    with serving(Path("plain-bundle-1")) as url:
        for name in ("large", "big"):
            reply = ask(url, {"model": name, "messages": said, "temperature": 0})
            assert reply["farthing"]["promise"] == "agreement", name

"""One in five upstream calls fails: each client hears what is right, and the ledger adds up."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from chat_server import FAULTS, Endpoint
from gateway_running import gateway, models, serve_section
from policy_running import POLICY, SYSTEM, letter, made_bundle
from serving import marked, total, until
from soaking import TIMES

from farthing_gateway.recording.failures import FailedRequest, FailureFilter, find_in

REQUESTS = 500 * TIMES
AT_ONCE = 25
SHARE = 0.2
SLOW_S = 5.0
"""Later than the models are waited for, and sooner than a request may take."""
STATUSES = {200, 429, 502, 504}
EVENTS = {"upstream_connection", "upstream_malformed", "upstream_timeout", "upstream_failed"}
KINDS = ("large", "small", "farthing/letters")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of an agreement."""
    folder = tmp_path_factory.mktemp("bundle")
    made_bundle(folder)
    return folder / "bundle"


@dataclass
class Heard:
    """What clients heard."""

    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    """Errors amid a stream, by their code."""
    costs: dict[str, int] = field(default_factory=dict)
    """What replies said they cost, by trace."""
    answered_by: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest_s: float = 0.0


@contextmanager
def failing(seed: int, tries: int) -> Iterator[Endpoint]:
    """Serve with each fault at its share of a fifth; of half, against three tries."""
    share = SHARE if tries == 1 else 0.5
    faults = dict.fromkeys((*FAULTS, "error event"), share / (len(FAULTS) + 1))
    with Endpoint(letter, faults=faults, seed=seed, slow_s=SLOW_S, retry_after_s=1) as stub:
        yield stub


async def ask(url: str, number: int, heard: Heard, session: aiohttp.ClientSession) -> None:
    """Send one request, and note what comes of it."""
    draw = random.Random(number)
    model, stream = draw.choice(KINDS), draw.random() < 0.5
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"number {number}"},
    ]
    body = {"model": model, "messages": messages, "stream": stream}
    began = time.monotonic()
    async with session.post(f"{url}/v1/chat/completions", json=body) as reply:
        said = await reply.read()
    heard.slowest_s = max(heard.slowest_s, time.monotonic() - began)
    heard.statuses[model, reply.status] += 1
    if reply.status != 200:
        openai_form(json.loads(said))
        if reply.status == 429:
            assert int(reply.headers["Retry-After"]) >= 1
    elif stream:
        note_stream(said, model, heard)
    else:
        note(json.loads(said), model, heard)


def openai_form(body: Any) -> str:
    """Return the code of an error, which has OpenAI's form."""
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return str(error["code"])


def note(body: Any, model: str, heard: Heard) -> None:
    """Note a whole reply."""
    assert body["choices"][0]["message"]["content"].startswith("The answer is")
    receipt(body["farthing"], model, heard)


def note_stream(said: bytes, model: str, heard: Heard) -> None:
    """Note a stream: it ends, and before that says what it cost or what broke."""
    events = [one for one in said.decode().split("\n\n") if one]
    assert events[-1] == "data: [DONE]"
    comments = [one for one in events if one.startswith(": farthing ")]
    pieces = [json.loads(one.removeprefix("data: ")) for one in events[:-1] if one[0] != ":"]
    errors = [one for one in pieces if "error" in one]
    assert len(comments) + len(errors) == 1
    if errors:
        heard.broken[openai_form(errors[0])] += 1
    else:
        receipt(json.loads(comments[0].removeprefix(": farthing ")), model, heard)


def receipt(said: Any, model: str, heard: Heard) -> None:
    """Note what a reply cost."""
    heard.costs[said["trace_id"]] = said["cost_nano"]
    heard.answered_by[model, said["answered_by"]] += 1


async def drive(url: str) -> Heard:
    """Send all requests, so many at once."""
    heard, room = Heard(), asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as session:

        async def one(number: int) -> None:
            async with room:
                await ask(url, number, heard, session)

        async with asyncio.TaskGroup() as group:
            for number in range(REQUESTS):
                group.create_task(one(number))
    return heard


def failures(database: str) -> list[FailedRequest]:
    """Return the rows of requests that failed."""
    return asyncio.run(find_in(database, FailureFilter(most=REQUESTS)))


def config(
    large: str, small: str, bundle: Path, database: str, *, fallbacks: bool, tries: int
) -> str:
    """Return a configuration of two models at two providers, and a policy over them."""
    text = serve_section(lease_s=60.0, deadline_s=45.0, database=database)
    if fallbacks:
        text += "[serve.fallbacks]\nlarge = ['small']\nsmall = ['large']\n"
    wait = f"tries = {tries}, first_s = 0.01, longest_s = 0.05, total_s = 1.5"
    found = models(large, tries=tries).replace(f"tries = {tries}", wait)
    found = found.replace("retries = ", "timeout_s = 2.5\nretries = ")
    head, rest = found.split("[models.large]")
    found = head.replace(large, small) + "[models.large]" + rest
    # `large` is asked itself, and nothing beside what clients ask for
    alone = POLICY.replace('answers_for = ["large"]\n', "audit = 0.0\n")
    text += found + "[record]\nshare = 0.0\n"
    return text + alone.replace('"bundle"', json.dumps(str(bundle)))


@pytest.mark.soak
@pytest.mark.parametrize("fallbacks", [False, True])
def test_every_client_hears_what_is_right_and_the_ledger_adds_up(
    tmp_path: Path, bundle: Path, *, fallbacks: bool
) -> None:
    adds_up(tmp_path, bundle, str(tmp_path / "gateway.db"), fallbacks=fallbacks, tries=1)


@pytest.mark.soak
def test_so_it_does_after_several_tries(tmp_path: Path, bundle: Path, where: str) -> None:
    adds_up(tmp_path, bundle, where, fallbacks=True, tries=3)


def adds_up(tmp_path: Path, bundle: Path, database: str, *, fallbacks: bool, tries: int) -> None:
    """Drive a gateway whose models fail; check what clients hear, the ledger, and the rows."""
    with failing(1, tries) as large, failing(2, tries) as small:
        text = config(large.url, small.url, bundle, database, fallbacks=fallbacks, tries=tries)
        with gateway(tmp_path, text) as running:
            heard = asyncio.run(drive(running.url))
            metrics = running.get("/metrics").body.decode()
            answered = sum(n for (_, status), n in heard.statuses.items() if status == 200)
            unanswered = REQUESTS - answered + heard.broken.total()
            until(lambda: len(failures(database)) == unanswered)
    assert heard.statuses.total() == REQUESTS
    assert {status for _, status in heard.statuses} <= STATUSES, heard.statuses
    assert set(heard.broken) <= EVENTS, heard.broken
    assert heard.slowest_s < 40
    asked_for = {model: heard.statuses[model, 200] for model in ("large", "small")}
    if fallbacks:
        assert heard.answered_by["large", "small"] > 0
        assert heard.answered_by["small", "large"] > 0
    else:
        assert heard.answered_by["large", "large"] + heard.broken.total() >= asked_for["large"]
    assert heard.broken.total() > 0

    balance, unknown = total(database), marked(database)
    assert balance.held.nano == balance.held.calls == 0
    asked = large.calls.total() + small.calls.total()
    assert balance.settled.calls == asked
    unknown_nano = sum(one.amount.nano for one in unknown if one.note not in heard.costs)
    assert balance.settled.nano == sum(heard.costs.values()) + unknown_nano
    assert "farthing_requests_under_way 0.0" in metrics

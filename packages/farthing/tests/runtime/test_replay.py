"""A log asked again: what is drawn, what is sent, what is stored, and what is remembered."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest
from chat_server import Endpoint

from farthing.errors import InputError
from farthing.models.prices import FREE, Price, Rates, TokenPrice
from farthing.runtime.collect import Report, collect_locally, price
from farthing.runtime.job import read_job
from farthing.runtime.replay import drawn
from farthing.runtime.second_answers import ask_again, price_again
from farthing.runtime.tried import Tried, look, recall, remember, share_of_look
from farthing.runtime.trying import Trying, Wanted, prepare, proposed, replay_of
from farthing.traces.assemble import assemble
from farthing.traces.base import Trace
from farthing.traces.files import RequestLog, read_log
from farthing.traces.store import Store

DOLLAR = 10**9
SYSTEM = "One word: billing or technical."
PRICES: dict[str, Price] = {
    name: TokenPrice((Rates(input=rate, output=rate),))
    for name, rate in {"nano": FREE.rates[0].input + 1, "large": FREE.rates[0].input + 9}.items()
}
PRICES["small"] = PRICES["nano"]


def row(number: int, **changed: Any) -> dict[str, Any]:
    said = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"Ticket {number}: my invoice"},
    ]
    return {
        "request_id": f"r{number}",
        "model": "large",
        "spend": 0.001,
        "prompt_tokens": 20,
        "completion_tokens": 2,
        "status": "success",
        "messages": said,
        "response": {"choices": [{"message": {"role": "assistant", "content": "Billing"}}]},
        "proxy_server_request": {"messages": said, "temperature": 0.5, "max_tokens": 30},
        **changed,
    }


def written(path: Path, rows: list[dict[str, Any]]) -> RequestLog:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return read_log([path], PRICES)


@pytest.fixture
def log(tmp_path: Path) -> RequestLog:
    return written(tmp_path / "log.jsonl", [row(number) for number in range(60)])


def replay(log: RequestLog, url: str, *models: str, n: int | None = 40) -> Trying:
    names = tuple(f"{url}#{model}" for model in models)
    return prepare(log, "log.jsonl", Wanted(names, n, reference=f"{url}#large"), PRICES)


def run(trying: Trying, store: Path, cap_nano: int = DOLLAR) -> Report:
    return collect_locally(trying.replay, store, cap_nano)


def stored(path: Path) -> dict[str, Trace]:
    with Store.read(path) as store:
        return {trace.id: trace for trace in store.traces()}


def test_a_request_is_sent_as_it_was_and_held_to_the_logged_answer(
    log: RequestLog, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.answer = lambda _: "billing."
    report = run(replay(log, endpoint.url, "nano"), tmp_path / "a.db")
    assert (report.progress.done, report.progress.left) == (40, 0)
    sent = endpoint.requests[0]
    assert next(message["content"] for message in sent["messages"]) == SYSTEM
    assert (sent["model"], sent["temperature"], sent["max_tokens"]) == ("nano", 0.5, 30)
    traces = stored(tmp_path / "a.db")
    assert len(endpoint.requests) == len(traces) == 40
    trace = next(iter(traces.values()))
    assert [(call.role, call.answer) for call in trace.calls] == [
        ("large", "Billing"),
        ("nano", "billing."),
    ]
    assert trace.calls[0].cost_usd == 0.001, "what was paid when it was logged"
    assert (trace.system_prompt, trace.missing_because) == (SYSTEM, "chance")
    arrays = assemble(list(traces.values()))
    assert (arrays.answer[:, 0, 0] == arrays.answer[:, 0, 1]).all()


@pytest.mark.slow
def test_models_and_requests_are_added_and_nothing_is_paid_twice(
    log: RequestLog, endpoint: Endpoint, tmp_path: Path
) -> None:
    store = tmp_path / "a.db"
    run(replay(log, endpoint.url, "nano"), store)
    spent = run(replay(log, endpoint.url, "nano"), store).balance.settled_nano
    assert len(endpoint.requests) == 40
    run(replay(log, endpoint.url, "small", n=50), store)
    assert len(endpoint.requests) == 90, "the other model alone"
    last = run(replay(log, endpoint.url, "nano", "small", n=50), store)
    assert len(endpoint.requests) == 100, "nano on the ten that are new"
    assert last.balance.settled_nano > spent
    roles = {frozenset(call.role for call in trace.calls) for trace in stored(store).values()}
    assert roles == {frozenset({"large", "nano", "small"})}
    assert len(stored(store)) == 50


def test_a_larger_sample_holds_the_smaller_one(log: RequestLog) -> None:
    small = drawn(log.requests, 20, 3)
    assert drawn(log.requests, 40, 3)[:20] == small
    assert drawn(log.requests[::-1], 20, 3) == small, "whatever the order of the log"
    assert drawn(log.requests, 20, 4) != small


def test_what_cannot_be_sent_again_is_left_out_and_said(tmp_path: Path, endpoint: Endpoint) -> None:
    tools = {"messages": row(1)["messages"], "tools": [{"type": "function"}]}
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    rows = [
        row(0),
        row(1, proxy_server_request=tools),
        row(2, messages=image, proxy_server_request={"messages": image}),
        row(3, status="failure", response={}),
    ]
    found = replay(written(tmp_path / "log.jsonl", rows), endpoint.url, "nano").replay
    assert len(found.questions()) == 1
    assert dict(found.left_out) == {
        "it sets tools": 1,
        "the log does not hold all that was sent as text": 1,
        "large gave no answer": 1,
    }


def test_the_cap_is_held_and_a_higher_one_goes_on(
    log: RequestLog, endpoint: Endpoint, tmp_path: Path
) -> None:
    store, trying = tmp_path / "a.db", replay(log, endpoint.url, "nano")
    estimate, _ = price(trying.replay, store, DOLLAR)
    assert estimate.calls == 40
    assert 0 < (estimate.likely_nano or 0) < estimate.largest_nano
    assert len(endpoint.requests) == 0, "a price asks nobody"
    first = run(trying, store, estimate.largest_nano // 10)
    assert first.progress.left > 0
    assert first.balance.settled_nano <= estimate.largest_nano // 10
    assert run(trying, store).progress.left == 0
    assert len(endpoint.requests) == 40


@pytest.mark.parametrize(
    ("fault", "said"), [("429", "questions failed"), (None, "replies can be read")]
)
def test_it_stops_where_nothing_can_come_of_it(
    log: RequestLog, endpoint: Endpoint, tmp_path: Path, fault: str | None, said: str
) -> None:
    trying = replay(log, endpoint.url, "nano", n=60)
    sections = {
        name: msgspec_replaced(section) for name, section in trying.replay.models.sections.items()
    }
    models = type(trying.replay.models)(sections, {}, trying.replay.models.prices)
    job = type(trying.replay)(**{**vars_of(trying.replay), "models": models, "at_once": 4})
    if fault is None:
        endpoint.answer = lambda _: " "
    else:
        endpoint.faults = {fault: 1.0}
    report = collect_locally(job, tmp_path / "a.db", DOLLAR)
    assert said in (report.progress.stopped or "")
    assert report.progress.left > 0
    if fault is not None:
        assert [(one.role, one.kind, one.cost_nano) for one in report.failures] == [
            ("nano", "rate_limit", 0)
        ]


def vars_of(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, without what it has worked out."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def msgspec_replaced(section: Any) -> Any:
    """Return a section that tries once."""
    patience = msgspec.structs.replace(section.patience, tries=1)
    return type(section)(section.settings, section.limits, patience)


def test_the_reference_is_asked_again_and_paid_once(
    log: RequestLog, endpoint: Endpoint, tmp_path: Path
) -> None:
    store, trying = tmp_path / "a.db", replay(log, endpoint.url, "nano")
    run(trying, store)
    endpoint.answer = lambda said: "Technical" if "Ticket 1" in said[-1]["content"] else "billing"
    again = trying.replay.again(0.5)
    assert price_again(again, store, DOLLAR).calls == 20
    ask_again(again, store, DOLLAR)
    asked = [one for one in endpoint.requests if one["model"] == "large"]
    others = sum("Ticket 1" in one["messages"][-1]["content"] for one in asked)
    assert again.agreed == (20 - others, 20)
    assert others > 0
    repeated = trying.replay.again(0.5)
    assert price_again(repeated, store, DOLLAR).calls == 0
    ask_again(repeated, store, DOLLAR)
    assert repeated.agreed == again.agreed
    assert len(asked) == sum(one["model"] == "large" for one in endpoint.requests)
    assert {len(trace.calls) for trace in stored(store).values()} == {2}, "in no trace"


@pytest.mark.parametrize(
    ("answers", "task"),
    [
        (["Billing", "Technical."], "text"),
        (["42", "$1,200.50", "-3"], "gsm8k"),
        (['{"a": 1}', '```json\n{"b": [2]}\n```'], "json"),
    ],
)
def test_the_log_proposes_when_answers_are_the_same(
    tmp_path: Path, answers: list[str], task: str
) -> None:
    rows = [
        row(k, response={"choices": [{"message": {"content": answers[k % len(answers)]}}]})
        for k in range(12)
    ]
    assert proposed(written(tmp_path / "log.jsonl", rows), "large").task == task


def test_prose_is_refused_with_what_to_do(tmp_path: Path) -> None:
    prose = {"choices": [{"message": {"content": "Dear customer, thank you very much. " * 9}}]}
    log = written(tmp_path / "log.jsonl", [row(k, response=prose) for k in range(12)])
    with pytest.raises(InputError, match=r"are prose .*--judge PROVIDER/MODEL"):
        proposed(log, "large")


def test_a_store_remembers_proofs_by_their_questions(
    log: RequestLog, endpoint: Endpoint, tmp_path: Path
) -> None:
    path, first = tmp_path / "a.db", replay(log, endpoint.url, "nano", n=20)
    run(first, path)
    with Store.open(path) as store:
        assert recall(store) is None
        remember(store, Tried.of(first.replay, {"nano": {"input_per_million": 1.0}}))
        arrays = assemble(list(store.traces()))
        assert [look(store, arrays, [loss]) for loss in (1, 1, 2, 1)] == [1, 1, 2, 1]
    second = replay(log, endpoint.url, "small", n=30)
    run(second, path)
    with Store.open(path) as store:
        remember(store, Tried.of(second.replay, {}))
        tried = recall(store)
        assert tried is not None
        assert set(tried.models) == {"large", "nano", "small"}
        assert (tried.system, tried.temperature, tried.alike) == (SYSTEM, 0.5, True)
        assert look(store, assemble(list(store.traces())), [1]) == 3, "other calls, same questions"
    assert sum(share_of_look(k) for k in range(1, 2_000)) < 1
    assert share_of_look(1) == Fraction(6, 10)


def test_a_job_replays_a_log(log: RequestLog, endpoint: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        'task = "text"\nquestions = "log.jsonl"\nmode = "replay"\npool = ["nano"]\nlimit = 10\n'
        f'[models.nano]\nprovider = "openai-compatible"\nmodel = "nano"\nurl = "{endpoint.url}"\n'
        "[prices.nano]\ninput_per_million = 1\noutput_per_million = 1\n"
    )
    report = collect_locally(replay_of(read_job(tmp_path / "job.toml")), tmp_path / "a.db", DOLLAR)
    assert report.progress.done == len(endpoint.requests) == 10
    assert endpoint.requests[0]["messages"][0]["content"] == SYSTEM
    assert {call.role for call in next(iter(stored(tmp_path / "a.db").values())).calls} == {
        "large",
        "nano",
    }


def test_the_cap_holds_where_the_reference_is_asked_again(
    log: RequestLog, endpoint: Endpoint, tmp_path: Path
) -> None:
    trying = replay(log, endpoint.url, "nano", n=20)
    run(trying, tmp_path / "a.db")
    asked = len(endpoint.requests)
    balance = ask_again(trying.replay.again(0.5), tmp_path / "a.db", 1)
    assert len(endpoint.requests) == asked
    assert balance.cap_nano == 1

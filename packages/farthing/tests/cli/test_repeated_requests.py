"""A question that an import folded several requests into, and what may be promised of it."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_pool import pool
from question_parts import proof_of

from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.promises.kinds.parity import Parity
from farthing.recommendation.evaluate import evaluate_in_memory
from farthing.recommendation.played import Questions, ReportingQuestions
from farthing.recommendation.recommend import recommend
from farthing.traces.arrays import joined
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.files import from_records, join
from farthing.traces.fingerprint import fingerprint
from farthing.traces.importers.base import Options
from farthing.traces.importers.read import Imported, Supplied, read_foreign
from farthing.traces.jsonl import encode, read_traces, write_traces
from farthing.traces.pool import cascade
from farthing.traces.store import Store

PER_REQUEST = (
    "--promise",
    "parity",
    "--epsilon",
    "0.1",
    "--reference",
    "large",
    "--per",
    "request",
)
MODELS = ("small", "large")
Refused = Callable[..., str]


def table(path: Path, asked: Sequence[tuple[str, str, str]]) -> Path:
    """Write a row a call: the request's id, its question and the model."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["request", "question", "model", "answer", "correct", "cost_usd"])
        for place, (name, question, model) in enumerate(asked):
            rows.writerow([name, question, model, str(place), place % 3 != 0, 1e-5])
    return path


def traffic(n: int = 60) -> list[tuple[str, str, str]]:
    """Return calls of n questions, the first ten of which are asked four times."""
    return [
        (f"{i}-{time}", f"What is {i}?", model)
        for i in range(n)
        for time in range(4 if i < 10 else 1)
        for model in MODELS
    ]


def folded(requests: int = 3) -> Trace:
    calls = [Call(round=1, role=name, answer="4", correct=True, cost_usd=1e-5) for name in MODELS]
    return Trace(id="q", question="2 + 2?", calls=calls, requests=requests)


# what is kept


def test_an_import_keeps_how_many_requests_a_question_stands_for(tmp_path: Path) -> None:
    asked = [("1", "a?", "small"), ("2", "a?", "small"), ("3", "a?", "large"), ("4", "b?", "small")]
    imported = read_foreign([table(tmp_path / "log.csv", asked)])
    assert [(one.question, one.requests) for one in imported.traces] == [("a?", 2), ("b?", 1)]
    assert len(imported.traces[0].calls) == 2
    assert any("so that nothing is promised per request" in note for note in imported.notes)


def test_a_call_that_failed_was_a_request_too(tmp_path: Path) -> None:
    rows = [spent(f"r{place}", "2 + 2?", "small") for place in range(2)]
    rows[0] |= {"status": "failure", "response": {}}
    (trace,) = read_foreign([lines(tmp_path / "spend.jsonl", rows)]).traces
    assert (trace.requests, trace.calls[0].error) == (2, None)


def test_samples_are_of_one_request(tmp_path: Path) -> None:
    asked = [("1", question, "small") for question in ("a?", "b?") for _ in range(3)]
    supplied = Supplied(options=Options(samples=True))
    found = read_foreign([table(tmp_path / "log.csv", asked)], None, supplied).traces
    assert [(one.requests, len(one.calls)) for one in found] == [(1, 3), (1, 3)]


def test_every_form_of_traces_keeps_it(tmp_path: Path) -> None:
    trace = folded()
    assert b'"requests":3' in encode(trace)
    assert b"requests" not in encode(folded(1))
    write_traces(tmp_path / "a.jsonl", [trace])
    assert read_traces(tmp_path / "a.jsonl") == [trace]
    with Store.open(tmp_path / "a.db") as store:
        store.add([trace], "a.jsonl")
        assert list(store.traces()) == [trace]
    records = [{"id": "q", "model": name, "requests": 3} for name in MODELS]
    assert [one.requests for one in from_records(records)] == [3]
    with pytest.raises(InputError, match=r"requests: is 0; it must be a whole number, at least 1"):
        from_records([{"id": "q", "model": "small", "requests": 0}])


def test_two_files_of_one_question_keep_the_larger_number() -> None:
    for files in ({"a": [folded(2)], "b": [folded(5)]}, {"a": [folded(5)], "b": [folded(2)]}):
        assert [one.requests for one in join(files)] == [5]


def test_arrays_keep_it() -> None:
    one, two = folded(3), folded(1)
    arrays = assemble([one, Trace(id="other", question="3?", calls=two.calls)])
    assert arrays.requests.tolist() == [3, 1]
    assert arrays.take(np.array([1, 0])).requests.tolist() == [1, 3]
    assert joined([arrays.rows(slice(1, 2)), arrays]).requests.tolist() == [1, 3, 1]
    assert cascade(assemble([one])).requests.tolist() == [3]


def test_it_makes_other_traces_only_where_it_is_more_than_one() -> None:
    once, again = (assemble([folded(requests)]) for requests in (1, 3))
    before = replace(once, requests=np.ones(0, dtype=np.int64))
    assert fingerprint(once) == fingerprint(before) != fingerprint(again)
    assert fingerprint(once).startswith("ab2d1ed5f37716bc")  # as before anything counted them


# what is refused


@pytest.mark.slow
def test_a_promise_per_request_of_folded_requests_is_refused(
    farthing: Callable[..., Any], tmp_path: Path
) -> None:
    log = table(tmp_path / "log.csv", traffic())
    done = farthing("recommend", "--traces", log, *PER_REQUEST)
    *notes, said = done.err.splitlines()
    assert (done.code, done.out) == (2, "")
    assert all(note.startswith("note: ") for note in notes)
    assert (
        "farthing: 10 of 60 questions stand for 40 requests, and an import kept the first reply"
        in said
    )
    assert "--column id=COLUMN" in said
    # The way out that it names is one, and so is the other.
    done = farthing("traces", "import", log, "--column", "id=request", "--store", "a.db")
    assert done.code == 0, done.err
    per_question = farthing("recommend", "--traces", log, *PER_REQUEST[:-2], "--out", "q")
    per_request = farthing("recommend", "--traces", "a.db", *PER_REQUEST, "--out", "r")
    for done in (per_question, per_request):
        assert "stand for" not in done.err


@pytest.mark.slow
def test_no_step_proves_or_measures_it() -> None:
    asked = Parity("large", "0.1", "0.2", per="request")
    drawn = pool(400)
    known = replace(drawn, content=np.arange(1, 401, dtype=np.uint64))
    again = replace(known, requests=np.where(np.arange(400) == 7, 2, 1))
    found = recommend(Dataset("log", known), asked)
    assert found.certificate is not None
    assert found.certificate.per_request
    with pytest.raises(InputError, match=r"^1 of 400 questions stand for 2 requests"):
        recommend(Dataset("log", again), asked)
    with pytest.raises(InputError, match=r"^1 of 400 questions stand for 2 requests"):
        evaluate_in_memory(found.bundle, ReportingQuestions(again, again))
    for train, calibrate in ((known, again), (again, known)):
        with pytest.raises(InputError, match=r"^1 of 400 questions stand for 2 requests"):
            proof_of(
                asked,
                found.bundle,
                Questions(train, train),
                Questions(calibrate, calibrate),
                None,
            )


# ids of requests


def spent(name: str, question: str, model: str) -> dict[str, Any]:
    """Return a row of LiteLLM's spend log."""
    return {
        "request_id": f"{name}-{model}", "session_id": name, "call_type": "acompletion",
        "model": model, "spend": 1e-5, "messages": [{"role": "user", "content": question}],
        "response": {"choices": [{"message": {"role": "assistant", "content": "4"}}]},
    }  # fmt: skip


def lines(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def with_columns(path: Path, **columns: str) -> Imported:
    return read_foreign([path], None, Supplied(options=Options(columns=columns)))


def test_litellm_takes_the_id_of_a_request_from_a_column(tmp_path: Path) -> None:
    log = [spent(f"r{time}", "2 + 2?", model) for time in range(3) for model in MODELS]
    path = lines(tmp_path / "spend.jsonl", log)
    (one,) = with_columns(path).traces
    assert (one.requests, len(one.calls)) == (3, 2)
    each = with_columns(path, id="session_id").traces
    assert [(trace.id, trace.requests, len(trace.calls)) for trace in each] == [
        (f"r{time}", 1, 2) for time in range(3)
    ]
    alone = with_columns(path, id="request_id")
    assert len(alone.traces) == 6
    assert any("every question was asked of one model alone" in note for note in alone.notes)
    with pytest.raises(InputError, match=r"spend\.jsonl: has no column run; there are call_type, "):
        with_columns(path, id="run")
    with pytest.raises(InputError, match=r"litellm reads no --column group=model; leave it out"):
        with_columns(path, group="model")
    path = lines(tmp_path / "spend.jsonl", [*log, log[0] | {"session_id": None}])
    with pytest.raises(InputError, match=r"line 7, session_id: is missing; --column id"):
        with_columns(path, id="session_id")

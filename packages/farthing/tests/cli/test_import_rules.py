"""How rows become questions: which of several wins, what contradicts, where a grade begins."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.errors import InputError
from farthing.traces.base import Trace
from farthing.traces.jsonl import read_traces

Farthing = Callable[..., Any]
Refused = Callable[..., str]
Import = Callable[..., Trace]


@pytest.mark.parametrize(
    ("column", "values", "called"),
    [
        ("split", ("train", "test"), "split"),
        ("split", ("calibrate", "train"), "split"),
        ("group", ("sums", "words"), "group"),
        ("gold", ("4", "5"), "accepted answer"),
        ("question", ("2 + 2?", "2 + 3?"), "question"),
        ("missing_because", ("chance", "earlier_reply"), "missing_because"),
    ],
)
def test_contradictory_marks_of_one_question_are_refused(
    farthing: Farthing, refused: Refused, column: str, values: tuple[str, str], called: str
) -> None:
    first, second = values
    Path("calls.csv").write_text(
        f"id,model,answer,cost,{column}\nq1,small,4,0.1,{first}\nq1,large,4,0.1,{second}\n"
    )
    says = f"line 3, id: 'q1' has another {called} in line 2; one id is one question"
    assert says in refused("traces", "import", "calls.csv", "--store", "a.db")
    assert says in refused("recommend", "--traces", "calls.csv")
    with pytest.raises(InputError, match=f"another {called} in line 2"):
        ft.read_traces("calls.csv")
    assert not list(Path().glob("a.db*"))


def test_what_one_row_says_of_a_question_holds_for_all(imported: Import) -> None:
    rows = [
        {"id": "q1", "model": "small", "answer": "4", "gold": "", "split": "", "group": ""},
        {"id": "q1", "model": "large", "answer": "5", "gold": "5", "split": "test", "group": "g"},
    ]
    trace = imported("calls.csv", rows)
    assert (trace.gold, trace.split, trace.group) == (["5"], "test", "g")


def asked(*, why: str = "", probability: object = "") -> str:
    """Return a table whose large model was asked every other question, which it says why of."""
    rows = ["id,question,model,answer,correct,cost,asked_probability,missing_because"]
    for i in range(300):
        rows.append(f"q{i},How much is {i}?,small,4,yes,0.001,,{why}")
        if i % 2:
            rows.append(f"q{i},How much is {i}?,large,4,yes,0.1,{probability},{why}")
    return "\n".join(rows) + "\n"


@pytest.mark.slow
def test_a_table_says_why_calls_are_missing(farthing: Farthing, refused: Refused) -> None:
    """What a lot decided is by chance; what an earlier reply decided proves nothing of the rest."""
    agreement = ("--promise", "agreement", "--epsilon", 0.5, "--delta", 0.2, "--reference", "large")
    missing = {}
    for name, table in {
        "lot": asked(probability=0.5),
        "chance": asked(why="chance"),
        "unsaid": asked(),
    }.items():
        Path("calls.csv").write_text(table)
        done = farthing("recommend", "--traces", "calls.csv", *agreement, "--out", name)
        assert done.code == 0, done.err
        certificate = ft.load(name).certificate
        assert certificate is not None
        assert certificate.asked_of is not None
        missing[name] = certificate.asked_of.missing
    assert missing == {"lot": "chance", "chance": "chance", "unsaid": "unknown"}
    Path("calls.csv").write_text(asked(why="earlier_reply"))
    assert "an earlier reply made" in refused("recommend", "--traces", "calls.csv", *agreement)


@pytest.mark.parametrize(
    ("why", "probability", "says"),
    [
        ("foo", "", "missing_because: must be chance, earlier_reply or unknown"),
        ("", "0", "line 4, asked_probability: is 0, but the call was made; give a number above 0"),
        ("", "50", "line 4, asked_probability: is '50'; it must be a number, at least 0 and at"),
    ],
)
def test_what_a_table_cannot_say_of_missing_calls(
    refused: Refused, why: str, probability: str, says: str
) -> None:
    Path("calls.csv").write_text(asked(why=why, probability=probability))
    assert says in refused("traces", "info", "calls.csv")


def test_the_first_row_that_was_answered_is_kept(imported: Import) -> None:
    said = ("", "4", "5", "")
    rows = [
        {"id": "q1", "model": "small", "answer": answer, "cost": i} for i, answer in enumerate(said)
    ]
    (call,) = imported("calls.csv", rows).calls
    assert (call.answer, call.cost_usd) == ("4", 1)


def test_calls_that_are_left_out_and_say_otherwise_are_counted(farthing: Farthing) -> None:
    """The second file has another answer to one question, and another grade of two."""
    rows = [f"q{i},small,4,yes,0.1" for i in range(5)]
    other = [rows[0].replace("4", "5"), *(row.replace("yes", "no") for row in rows[1:3]), *rows[3:]]
    for name, lines in (("a.csv", rows), ("b.csv", other), ("same.csv", rows)):
        Path(name).write_text("\n".join(["id,model,answer,correct,cost", *lines]))
    kept = "5 calls left out: the model was asked the same question before; of each model the first"
    said = farthing("traces", "import", "a.csv", "b.csv", "--store", "a.db").err
    assert f"{kept} answer is kept (3 have another answer or grade)" in said
    said = farthing("traces", "import", "a.csv", "same.csv", "--store", "b.db").err
    assert kept in said
    assert "another answer" not in said


def test_answers_of_the_file_go_before_those_beside_it(imported: Import) -> None:
    Path("gold.csv").write_text("id,gold\nq1,4\n")
    row = {"id": "q1", "model": "small", "answer": "4"}
    assert imported("calls.csv", [row | {"gold": "5"}], "--gold", "gold.csv").gold == ["5"]
    assert imported("calls.csv", [row], "--gold", "gold.csv").gold == ["4"]


GENERATION = {
    "type": "GENERATION",
    "start_time": "2026-01-31 12:00:02.000000",
    "end_time": "2026-01-31 12:00:01.000000",
    "provided_model_name": "small",
    "input": "2 + 2?",
    "output": "4",
}


def test_a_score_at_the_threshold_is_right(imported: Import) -> None:
    for score, right in ((0.6, True), (0.59, False)):
        given = ("--score", "exact", "--threshold", 0.6)
        (call,) = imported("o.json", [GENERATION | {"exact": score}], *given).calls
        assert call.correct is right
        row = {"id": "q", "model": "m", "answer": "4", "score": score}
        assert imported("t.csv", [row], "--threshold", 0.6).calls[0].correct is right


def test_a_call_that_ended_before_it_began_has_no_time(imported: Import) -> None:
    assert imported("o.json", [GENERATION]).calls[0].latency_s is None
    assert imported("o.json", [GENERATION | {"latency": 1.5}]).calls[0].latency_s == 1.5


@pytest.mark.parametrize("kind", ["SPAN", "EVENT", "TOOL", "EMBEDDING"])
def test_only_generations_are_calls(farthing: Farthing, kind: str) -> None:
    Path("o.json").write_text(json.dumps([GENERATION, GENERATION | {"type": kind, "input": "x"}]))
    done = farthing("traces", "import", "o.json", "--store", "a.db")
    assert f"1 row left out: an observation of the type {kind}, which is no call" in done.err
    assert "imported 1 questions" in done.err or "imported 1 question " in done.err


def test_a_result_without_the_named_score_is_not_graded(imported: Import) -> None:
    result = {
        "promptIdx": 0,
        "testCase": {"assert": [{"type": "equals", "value": "4"}]},
        "provider": {"id": "openai:gpt-4o-mini"},
        "prompt": {"raw": "2 + 2?"},
        "vars": {},
        "response": {"output": "4"},
        "success": True,
        "score": 1,
        "failureReason": 0,
        "gradingResult": {"componentResults": [{"pass": True}]},
        "namedScores": {"other": 1},
    }
    (call,) = imported("p.json", {"results": [result]}, "--score", "exact").calls
    assert (call.score, call.correct) == (None, None)


def test_a_question_is_the_same_in_whichever_order_its_rows_stand(farthing: Farthing) -> None:
    rows = [f"q{i},{model},{i},0.01" for i in range(3) for model in ("small", "large")]
    found = []
    for ordered in (rows, rows[::-1]):
        Path("calls.csv").write_text("\n".join(["id,model,answer,cost", *ordered]) + "\n")
        for old in Path().glob("a.db*"):
            old.unlink()
        assert farthing("traces", "import", "calls.csv", "--store", "a.db").code == 0
        assert farthing("traces", "export", "--store", "a.db", "--out", "out.jsonl").code == 0
        traces = read_traces("out.jsonl")
        found.append({trace.id: {c.role: c.answer for c in trace.calls} for trace in traces})
    assert (
        found[0]
        == found[1]
        == {f"q{i}": dict.fromkeys(("small", "large"), str(i)) for i in range(3)}
    )

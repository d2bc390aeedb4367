"""Everything that the form refuses: by the reader, by the schema of a line, and by an import."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from farthing.errors import InputError, TraceFormatError
from farthing.traces.base import Call, Trace
from farthing.traces.jsonl import decode, encode, iter_traces, read_traces, trace_schema
from farthing.traces.store import Store

Line = dict[str, Any]
Change = Callable[[Line], object]

VALIDATOR = Draft202012Validator(trace_schema())
PAPER: Line = {
    "id": "q",
    "gold": ["4"],
    "calls": [
        {"round": t, "role": role, "answer": "4", "correct": True}
        for t in (1, 2)
        for role in ("base", "guide")
    ],
}
POOL: Line = {
    "id": "q",
    "gold": [],
    "calls": [
        {"round": 1, "role": "gpt-4o", "answer": "4", "correct": True},
        {"round": 1, "role": "llama", "answer": None},
    ],
}


def put(name: str, value: Any) -> Change:
    """Put a field of the trace."""
    return lambda line: line.update({name: value})


def call(name: str, value: Any) -> Change:
    """Put a field of the second call."""
    return lambda line: line["calls"][1].update({name: value})


def without(name: str) -> Change:
    return lambda line: line["calls"][1].pop(name)


def keep(*rounds_and_roles: tuple[int, str]) -> Change:
    def only(line: Line) -> None:
        kept = [c for c in line["calls"] if (c["round"], c["role"]) in rounds_and_roles]
        line["calls"] = kept

    return only


def truncate(*rounds_and_roles: tuple[int, str]) -> Change:
    def only(line: Line) -> None:
        keep(*rounds_and_roles)(line)
        line["truncated"] = True

    return only


def rename(role: str) -> Change:
    """Let every answer come from this role; a reply is no answer."""
    return lambda line: [c.update(role=role) for c in line["calls"]]


SEEN_BY_A_SCHEMA: dict[str, tuple[Line, Change, str]] = {
    "no id": (PAPER, lambda line: line.pop("id"), "id"),
    "an empty id": (PAPER, put("id", ""), "id"),
    "an id with a NUL": (PAPER, put("id", "q\0"), "id"),
    "an id that is a number": (PAPER, put("id", 7), "id"),
    "no list of calls": (PAPER, lambda line: line.pop("calls"), "calls"),
    "no calls": (PAPER, put("calls", []), "calls"),
    "calls that are none": (PAPER, put("calls", ["base"]), "calls[0]"),
    "only replies": (PAPER, rename("policy-gpt-4o"), "calls"),
    "an unknown field of a trace": (PAPER, put("difficulty", 3), "difficulty"),
    "an unknown split": (PAPER, put("split", "dev"), "split"),
    "almost a split": (PAPER, put("split", "train\n"), "split"),
    "gold that is text": (PAPER, put("gold", "4"), "gold"),
    "a flag that is a number": (PAPER, put("truncated", 1), "truncated"),
    "a call without a role": (PAPER, without("role"), "calls[1].role"),
    "a call with an empty role": (PAPER, call("role", ""), "calls[1].role"),
    "a call without a round": (PAPER, without("round"), "calls[1].round"),
    "round 0": (PAPER, call("round", 0), "calls[1].round"),
    "round 1.5": (PAPER, call("round", 1.5), "calls[1].round"),
    "a negative cost": (PAPER, call("cost_usd", -1e-9), "calls[1].cost_usd"),
    "a cost beyond reason": (PAPER, call("cost_usd", 1e7), "calls[1].cost_usd"),
    "a negative largest cost": (
        PAPER,
        call("largest_cost_usd", -1e-9),
        "calls[1].largest_cost_usd",
    ),
    "a cost in words": (PAPER, call("cost_usd", "0.1"), "calls[1].cost_usd"),
    "a confidence above 1": (PAPER, call("confidence", 1.01), "calls[1].confidence"),
    "a confidence below 0": (PAPER, call("confidence", -0.01), "calls[1].confidence"),
    "a negative uncertainty": (PAPER, call("uncertainty", -1), "calls[1].uncertainty"),
    "negative tokens": (PAPER, call("input_tokens", -1), "calls[1].input_tokens"),
    "half a token": (PAPER, call("output_tokens", 0.5), "calls[1].output_tokens"),
    "negative tool calls": (PAPER, call("tool_calls", -1), "calls[1].tool_calls"),
    "negative time": (PAPER, call("latency_s", -1), "calls[1].latency_s"),
    "a verdict in words": (PAPER, call("verdict", "yes"), "calls[1].verdict"),
    "an answer that is a number": (PAPER, call("answer", 4), "calls[1].answer"),
    "an error in words": (PAPER, call("error", "timeout"), "calls[1].error"),
    "half an error": (PAPER, call("error", {"type": "timeout"}), "calls[1].error.message"),
    "unknown text": (PAPER, call("prompt", "2 + 2?"), "calls[1].prompt"),
    "an unknown flag": (PAPER, call("cached", True), "calls[1].cached"),
    "unknown extra": (PAPER, call("extra", {"depth": 3}), "calls[1].extra"),
}
"""Name to a line, what is done to it, and the field that is named."""

SEEN_BY_THE_READER: dict[str, tuple[Line, Change, str]] = {
    "a cost above the largest": (
        PAPER,
        lambda line: line["calls"][1].update(cost_usd=0.2, largest_cost_usd=0.1),
        "calls[1].largest_cost_usd",
    ),
    "the same role twice": (PAPER, call("role", "base"), "calls[1].role"),
    "a stranger among base and guide": (PAPER, call("role", "gpt-4o"), "calls[1].role"),
    "no guide in round 1": (PAPER, keep((1, "base"), (2, "base"), (2, "guide")), "calls"),
    "no round 1": (PAPER, keep((2, "base"), (2, "guide")), "calls"),
    "no round 2": (PAPER, call("round", 3), "calls"),
    "a hole in a truncated trace": (PAPER, truncate((1, "base"), (2, "base")), "calls"),
    "no round 1 in a truncated trace": (PAPER, truncate((2, "base"), (2, "guide")), "calls"),
    "a reply in a round of its own": (
        PAPER,
        lambda line: line["calls"].append({"round": 3, "role": "policy-x", "answer": "1"}),
        "calls[4].round",
    ),
    "a misspelt cost": (PAPER, call("cost", 0.001), "calls[1].cost"),
    "seconds by another name": (PAPER, call("seconds", 0.5), "calls[1].seconds"),
    "tokens that are none of the two kinds": (
        PAPER,
        call("Output tokens", 5),
        "calls[1].Output tokens",
    ),
    "a later round in a pool": (POOL, call("round", 2), "calls[1].round"),
    "a pool that saw itself": (POOL, put("independent", False), "independent"),
}


def broken(line: Line, change: Change) -> Line:
    spoiled = deepcopy(line)
    change(spoiled)
    return spoiled


def refused(tmp_path: Path, *lines: str) -> TraceFormatError:
    """Return the refusal of a file that begins with these lines, and see that none is imported."""
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(TraceFormatError) as refusal:
        read_traces(path)
    with Store.open(tmp_path / "traces.db") as store:
        before = Trace(id="before", calls=[Call(round=1, role="m", answer="4", correct=True)])
        store.add([before], "before")
        with pytest.raises(InputError):
            store.add(iter_traces(path), str(path))
        assert list(store.traces()) == [before]
    assert refusal.value.file == str(path)
    assert "\n" not in str(refusal.value)
    return refusal.value


def good(name: str, like: Line) -> str:
    return json.dumps(like | {"id": name})


@pytest.mark.parametrize("line", [PAPER, POOL], ids=["paper", "pool"])
def test_what_the_others_spoil_is_sound(line: Line, tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").write_text(json.dumps(line))
    assert len(read_traces(tmp_path / "runs.jsonl")) == 1
    VALIDATOR.validate(line)


@pytest.mark.parametrize("case", SEEN_BY_A_SCHEMA | SEEN_BY_THE_READER)
def test_every_refusal_names_file_line_and_field(case: str, tmp_path: Path) -> None:
    line, change, field = (SEEN_BY_A_SCHEMA | SEEN_BY_THE_READER)[case]
    spoiled = json.dumps(broken(line, change))
    refusal = refused(tmp_path, good("1", line), good("2", line), spoiled)
    assert (refusal.line, refusal.field) == (3, field)


@pytest.mark.parametrize("case", SEEN_BY_A_SCHEMA)
def test_the_schema_refuses_it_too(case: str) -> None:
    line, change, _ = SEEN_BY_A_SCHEMA[case]
    assert not VALIDATOR.is_valid(broken(line, change))


@pytest.mark.parametrize("case", SEEN_BY_THE_READER)
def test_what_the_schema_lets_pass_is_known(case: str) -> None:
    """A case that a schema can see belongs among those that it refuses."""
    line, change, _ = SEEN_BY_THE_READER[case]
    assert VALIDATOR.is_valid(broken(line, change))


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("{", "line", "is no JSON"),
        ("[]", "line", "is not a JSON object"),
        ("null", "line", "is not a JSON object"),
        ('{"id":"q"} {"id":"r"}', "line", "is no JSON"),
        ("\ufeff{}", "line", "is no JSON"),
        ("[" * 100_000, "line", "is no JSON"),
        ('{"id":"\\ud800"}', "line", "is no JSON"),
        ("{COST:NaN}", "calls[0].cost_usd", "is nan; a number must be finite"),
        ("{COST:Infinity}", "calls[0].cost_usd", "is inf; a number must be finite"),
        ("{COST:1,LARGEST:NaN}", "calls[0].largest_cost_usd", "is nan; a number must be finite"),
        ("{COST:1e400}", "calls[0].cost_usd", "is inf; a number must be finite"),
        ("{COST:" + "9" * 400 + "}", "calls[0].cost_usd", "number out of range"),
        ("{COST:1,DEPTH:-Infinity}", "calls[0].depth", "is -inf; a number must be finite"),
        ("{COST:1,DEPTH:" + "9" * 400 + "}", "calls[0].depth", "is too large for a number"),
        ("{COST:" + "9" * 5000 + "}", "line", "is no JSON"),
    ],
)
def test_broken_json_and_numbers_that_are_none(
    text: str, field: str, problem: str, tmp_path: Path
) -> None:
    if "COST" in text:
        inside = (
            text.strip("{}")
            .replace("COST", '"cost_usd"')
            .replace("LARGEST", '"largest_cost_usd"')
            .replace("DEPTH", '"depth"')
        )
        text = '{"id":"q","gold":["4"],"calls":[{"round":1,"role":"gpt-4o",' + inside + "}]}"
    refusal = refused(tmp_path, good("1", POOL), text)
    assert (refusal.line, refusal.field) == (2, field)
    assert problem in refusal.problem


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (call("cost", 0.001), "did you mean `cost_usd`?"),
        (call("anwser", "4"), "did you mean `answer`?"),
        (put("golds", ["4"]), "did you mean `gold`?"),
        (put("split", "dev"), "must be train, calibrate or test"),
        (put("missing_because", "foo"), "must be chance, earlier_reply or unknown"),
        (put("calls", []), "must not be empty"),
        (call("cost_usd", "0.1"), "must be a number"),
        (call("round", 0), "must be a whole number, at least 1"),
    ],
)
def test_refusals_are_in_plain_words(change: Change, says: str, tmp_path: Path) -> None:
    refusal = refused(tmp_path, json.dumps(broken(PAPER, change)))
    assert refusal.problem.endswith(says)


ASKED: Line = {
    "id": "q",
    "task": "gsm8k",
    "gold": ["4"],
    "calls": [{"round": 1, "role": "a", "answer": "4"}],
}


@pytest.mark.parametrize(
    ("change", "field", "says"),
    [
        (put("task", "gsm9k"), "task", "did you mean 'gsm8k'"),
        (put("gold", ["four"]), "gold", "is 'four', which the task gsm8k cannot grade against"),
        (put("gold", ["4", " "]), "gold[1]", "is empty"),
    ],
)
def test_what_no_task_can_grade_is_refused(
    change: Change, field: str, says: str, tmp_path: Path
) -> None:
    refusal = refused(tmp_path, json.dumps(ASKED), json.dumps(broken(ASKED, change) | {"id": "r"}))
    assert (refusal.line, refusal.field) == (2, field)
    assert says in refusal.problem
    graded = broken(ASKED, change)
    graded["calls"][0]["correct"] = True
    assert decode(json.dumps(graded).encode()).calls[0].correct


def test_numbers_of_other_names_are_kept() -> None:
    line = broken(PAPER, call("depth", 3))
    assert decode(json.dumps(line).encode()).calls[1].extra == {"depth": 3.0}


def test_an_id_comes_once(tmp_path: Path) -> None:
    refusal = refused(tmp_path, good("1", POOL), good("2", POOL), "", good("1", POOL))
    assert (refusal.line, refusal.field) == (4, "id")
    assert refusal.problem == "'1' is that of line 1; ids are unique"


def test_a_file_has_one_shape(tmp_path: Path) -> None:
    refusal = refused(tmp_path, good("1", POOL), good("2", PAPER))
    assert (refusal.line, refusal.field) == (2, "calls")
    assert "shape 'paper', but line 1 has 'pool'" in refusal.problem


def test_a_missing_round_shows_against_other_questions(tmp_path: Path) -> None:
    short = broken(PAPER, keep((1, "base"), (1, "guide")))
    whole, truncated = good("1", PAPER), good("2", short | {"truncated": True})
    files = [
        ((whole, good("3", short)), 2),
        ((good("3", short), whole), 1),
        ((truncated, good("3", short), whole), 2),
        ((good("1", PAPER | {"truncated": True}), good("3", short)), 2),
    ]
    for number, (lines, line) in enumerate(files):
        (tmp_path / str(number)).mkdir()
        refusal = refused(tmp_path / str(number), *lines)
        assert (refusal.line, refusal.field) == (line, "calls")
        assert "round 2 is missing, but line" in refusal.problem
    path = tmp_path / "fine.jsonl"
    path.write_text(f"{truncated}\n{whole}\n")
    assert len(read_traces(path)) == 2


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_the_schema_allows_every_line_that_we_write(
    any_file: st.SearchStrategy[list[Trace]], data: st.DataObject
) -> None:
    for trace in data.draw(any_file):
        assert VALIDATOR.is_valid(json.loads(encode(trace)))


def test_the_schema_is_one_and_describes_its_fields() -> None:
    schema = trace_schema()
    Draft202012Validator.check_schema(schema)
    assert set(schema["properties"]) == set(Trace.__struct_fields__)
    call = schema["$defs"]["Call"]
    for properties in (schema["properties"], call["properties"]):
        assert all("description" in field for field in properties.values())
    assert set(call["properties"]) == set(Call.__struct_fields__) - {"extra"}
    assert (
        schema["properties"]["id"]["description"] == "Question id, unique in a file and in a store."
    )
    assert json.loads(json.dumps(schema)) == schema

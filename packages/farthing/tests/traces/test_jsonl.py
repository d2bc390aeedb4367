import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, TraceFormatError
from farthing.traces.base import Call, CallError, Trace
from farthing.traces.jsonl import decode, encode, iter_traces, read_traces, write_traces
from farthing.traces.store import Store

Files = st.SearchStrategy[list[Trace]]


def simple(name: str = "q") -> Trace:
    return Trace(id=name, gold=["4"], calls=[Call(round=1, role="gpt-4o", answer="4")])


@pytest.mark.slow
@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data(), suffix=st.sampled_from(["jsonl", "jsonl.gz"]))
def test_what_is_written_reads_back_the_same(
    any_file: Files, tmp_path: Path, data: st.DataObject, suffix: str
) -> None:
    traces = data.draw(any_file)
    path = tmp_path / f"runs.{suffix}"
    write_traces(path, traces)
    assert read_traces(path) == traces
    first = path.read_bytes()
    write_traces(path, iter(traces))
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    path.unlink()


@pytest.mark.slow
@settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_store_gives_back_the_file_that_it_was_filled_from(
    any_file: Files, tmp_path: Path, data: st.DataObject
) -> None:
    path, again = tmp_path / "runs.jsonl", tmp_path / "again.jsonl"
    write_traces(path, data.draw(any_file))
    with Store.open(":memory:") as store:
        store.add(iter_traces(path), str(path))
        write_traces(again, store.traces())
    assert again.read_bytes() == path.read_bytes()


def test_a_gzipped_file_is_the_plain_one_compressed(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    for path in (plain, packed):
        write_traces(path, [simple("1"), simple("2")])
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes()[4:8] == bytes(4), "the time of writing does not matter"


def test_every_field_has_the_name_of_the_form() -> None:
    """The line is spelled out here, so that a renamed field of a record cannot pass."""
    line = (
        '{"id":"q1","task":"gsm8k","group":"algebra","split":"test","independent":true,'
        '"truncated":true,"question":"2 + 2?","gold":["4"],"calls":[{"round":1,"role":"base",'
        '"model":"llama-2-7b","answer":"4","correct":true,"text":"It is 4.","verdict":false,'
        '"confidence":0.5,"uncertainty":1.5,"input_tokens":10,"output_tokens":2,"tool_calls":1,'
        '"latency_s":0.25,"cost_usd":4.89e-05,"largest_cost_usd":0.01,"f1":1.0,"score":0.5,"depth":3,'
        '"error":{"type":"timeout","message":"after 30 s"}}]}'
    )
    call = Call(
        round=1,
        role="base",
        model="llama-2-7b",
        answer="4",
        correct=True,
        text="It is 4.",
        verdict=False,
        confidence=0.5,
        uncertainty=1.5,
        input_tokens=10,
        output_tokens=2,
        tool_calls=1,
        latency_s=0.25,
        cost_usd=4.89e-05,
        largest_cost_usd=0.01,
        error=CallError("timeout", "after 30 s"),
        f1=1.0,
        score=0.5,
        extra={"depth": 3.0},
    )
    trace = Trace(
        id="q1",
        question="2 + 2?",
        gold=["4"],
        calls=[call],
        task="gsm8k",
        group="algebra",
        split="test",
        independent=True,
        truncated=True,
    )
    assert decode(line.encode()) == trace
    assert json.loads(encode(trace)) == json.loads(line)


def test_absent_and_false_are_the_same() -> None:
    call = (
        '"calls":[{"round":1,"role":"base","answer":"4"},{"round":1,"role":"guide","answer":"4"}]'
    )
    short = decode(f'{{"id":"q","gold":["4"],{call}}}'.encode())
    long = decode(f'{{"id":"q","gold":["4"],"independent":false,"group":null,{call}}}'.encode())
    assert short == long


def test_blank_lines_count_but_hold_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(b"\n" + encode(simple()) + b"\r\n\n  \n{}\n")
    with pytest.raises(TraceFormatError, match=r"runs\.jsonl, line 5, id: is missing"):
        read_traces(path)
    path.write_bytes(b"\n" + encode(simple()) + b"\r\n\n")
    assert read_traces(path) == [simple()]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("runs.jsonl", b"", ": is empty"),
        ("runs.jsonl", b" \n\n", ": is empty"),
        ("runs.jsonl.gz", b"no gzip", ": is damaged gzip"),
        ("runs.jsonl.gz", gzip.compress(encode(simple()) * 99)[:-9], ": is damaged gzip"),
        ("runs.jsonl", None, r": cannot be read \(No such file"),
    ],
)
def test_a_file_that_is_none_is_refused(
    tmp_path: Path, name: str, content: bytes | None, problem: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TraceFormatError, match=problem):
        read_traces(tmp_path / name)


def test_reading_goes_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(encode(simple()) + b"\nbroken")
    traces = iter_traces(path)
    assert next(traces) == simple()
    with pytest.raises(TraceFormatError, match="line 2"):
        next(traces)


def broken() -> Iterator[Trace]:
    yield simple("1")
    raise KeyboardInterrupt


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"runs.{suffix}"
    write_traces(path, [simple()])
    before = path.read_bytes()
    nan = Call(round=1, role="m", answer="4", uncertainty=float("nan"))
    hidden = Call(round=1, role="m", answer="4", extra={"confidence": 0.5})
    unwritable: list[tuple[list[Trace], str]] = [
        ([simple("1"), simple("1")], "line 2, id: '1' is that of line 1"),
        ([simple("1"), Trace(id="2", gold=["4"], calls=[nan])], "line 2, calls: would not read"),
        ([Trace(id="2", gold=["4"], calls=[hidden])], "line 1, calls: would not read back the"),
        ([], "would be empty"),
    ]
    for traces, problem in unwritable:
        with pytest.raises(TraceFormatError, match=problem):
            write_traces(path, traces)
    with pytest.raises(KeyboardInterrupt):
        write_traces(path, broken())
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written"):
        write_traces(tmp_path / "nowhere" / "runs.jsonl", [simple()])

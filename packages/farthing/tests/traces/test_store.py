import hashlib
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import StoreError
from farthing.money import nano_from_usd
from farthing.traces.base import Call, CallError, Trace
from farthing.traces.store import APPLICATION_ID, BATCH, Store
from farthing.traces.system import RoleSetup

MIGRATIONS = resources.files("farthing.traces") / "migrations"


def trace(name: str, **more: Any) -> Trace:
    calls = [Call(round=1, role="base", answer="4", correct=True, cost_usd=1e-5)]
    fields: dict[str, Any] = {"id": name, "question": "2 + 2?", "calls": calls} | more
    return Trace(**fields)


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


share = st.floats(0, 1)
amount = st.floats(0, 1e6)
count = st.integers(0, 2**40)
CALL_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "round": st.integers(1, 2**40),
    "role": st.text(),
    "model": optional(st.text()),
    "answer": optional(st.text()),
    "correct": optional(st.booleans()),
    "text": optional(st.text()),
    "verdict": optional(st.booleans()),
    "confidence": optional(share),
    "uncertainty": optional(amount),
    "input_tokens": optional(count),
    "output_tokens": optional(count),
    "tool_calls": optional(count),
    "latency_s": optional(amount),
    "cost_usd": optional(amount),
    "largest_cost_usd": optional(amount),
    "asked_probability": optional(st.floats(0, 1, exclude_min=True)),
    "ended": optional(st.booleans()),
    "error": optional(st.builds(CallError, type=st.text(), message=st.text())),
    "f1": optional(share),
    "score": optional(st.floats(allow_nan=False)),
    "extra": st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
}
TRACE_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "id": st.text(),
    "question": st.text(),
    "gold": st.lists(st.text(), max_size=3),
    "calls": st.lists(st.fixed_dictionaries(CALL_FIELDS).map(lambda d: Call(**d)), max_size=4),
    "task": st.text(),
    "group": optional(st.text()),
    "split": optional(st.sampled_from(["train", "calibrate", "test"])),
    "independent": st.booleans(),
    "truncated": st.booleans(),
    "system_prompt": optional(st.text()),
    "history": optional(st.text()),
    "options": optional(st.text()),
    "parameters": optional(st.text()),
    "missing_because": optional(st.sampled_from(["chance", "earlier_reply", "unknown"])),
    "requests": st.integers(1, 9),
    "cluster": optional(st.text(min_size=1)),
}
any_traces = st.lists(
    st.fixed_dictionaries(TRACE_FIELDS).map(lambda d: Trace(**d)),
    max_size=5,
    unique_by=lambda t: t.id,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(any_traces)
def test_what_goes_in_comes_out(traces: list[Trace]) -> None:
    with Store.open(":memory:") as store:
        assert store.add(traces, "anything") == len(traces)
        back = list(store.traces())
        assert back == traces
        types = [type(getattr(c, f)) for t in back for c in t.calls for f in CALL_FIELDS]
        assert types == [type(getattr(c, f)) for t in traces for c in t.calls for f in CALL_FIELDS]
        costs = [c.cost_usd for t in traces for c in t.calls if c.cost_usd is not None]
        (spent,) = store.connection.execute("SELECT sum(cost_nano) FROM calls").fetchone()
        assert (spent or 0) == sum(nano_from_usd(cost) for cost in costs)


def test_no_field_of_a_record_is_forgotten() -> None:
    assert set(CALL_FIELDS) == set(Call.__struct_fields__)
    assert set(TRACE_FIELDS) == set(Trace.__struct_fields__)


def test_traces_come_back_in_order_from_a_new_process(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    many = [trace(f"q{i}") for i in range(BATCH + 7, 0, -1)]
    with Store.open(path) as store:
        store.add(many, "a")
        store.add([trace("last")], "b")
    with Store.open(path) as store:
        assert store.count() == BATCH + 8
        assert [t.id for t in store.traces()] == [t.id for t in many] + ["last"]


def test_a_duplicate_is_refused_by_name_and_nothing_is_imported() -> None:
    with Store.open(":memory:") as store:
        store.add([trace("q1"), trace("q2")], "old.jsonl")
        for again in ([trace("new"), trace("q2")], [trace("new"), trace("q9"), trace("q9")]):
            with pytest.raises(
                StoreError, match=r"'q[29]'; nothing was imported: remove or rename"
            ):
                store.add(again, "new.jsonl")
        far_apart = [trace(f"n{i}") for i in range(2 * BATCH)] + [trace("n0")]
        with pytest.raises(StoreError, match="'n0'; nothing"):
            store.add(far_apart, "new.jsonl")
        assert [t.id for t in store.traces()] == ["q1", "q2"]
        assert [log.source for log in store.imports()] == ["old.jsonl"]


@pytest.mark.parametrize(
    "bad",
    [
        Call(round=1, role="base", cost_usd=-1.0),
        Call(round=1, role="base", cost_usd=float("inf")),
        Call(round=1, role="base", cost_usd=float("nan")),
        Call(round=1, role="base", cost_usd=1e300),
        Call(round=1, role="base", largest_cost_usd=-1.0),
        Call(round=1, role="base", largest_cost_usd=float("inf")),
        Call(round=1, role="base", largest_cost_usd=float("nan")),
        Call(round=1, role="base", confidence=1.5),
        Call(round=1, role="base", input_tokens=2**70),
        Call(round=1, role="base", answer="\ud800"),
        Call(round=1, role="base", extra={"n": float("nan")}),
        Call(round=0, role="base"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_is_imported(bad: Call) -> None:
    with Store.open(":memory:") as store:
        with pytest.raises(StoreError, match="from 'good' to 'bad' cannot be stored"):
            store.add([trace("good"), trace("bad", calls=[bad])], "file")
        assert store.count() == 0


def test_a_failing_reader_leaves_nothing() -> None:
    def reader() -> Iterator[Trace]:
        yield from (trace(f"q{i}") for i in range(BATCH + 1))
        raise KeyboardInterrupt

    with Store.open(":memory:") as store:
        store.add([trace("kept")], "before")
        with pytest.raises(KeyboardInterrupt):
            store.add(reader(), "file")
        assert [t.id for t in store.traces()] == ["kept"]
        assert store.add([trace("q0")], "after") == 1


@pytest.mark.slow
def test_a_process_killed_in_mid_import_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store.open(path) as store:
        store.add([trace("kept")], "before")
    program = textwrap.dedent(
        """
        import sys, time
        from farthing.traces.base import Call, Trace
        from farthing.traces.store import Store

        def reader():
            for i in range(20_000):
                yield Trace(id=f"q{i}", calls=[Call(round=1, role="base", text="x" * 200)])
            print("written", flush=True)
            time.sleep(60)

        with Store.open(sys.argv[1]) as store:
            store.add(reader(), "file")
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"written\n"
        child.send_signal(signal.SIGKILL)
    with Store.open(path) as store:
        assert [t.id for t in store.traces()] == ["kept"]
        assert store.connection.execute("SELECT count(*) FROM calls").fetchone() == (1,)


def test_what_traces_were_made_with_is_known_of_those_that_were_collected(tmp_path: Path) -> None:
    one = {"base": RoleSetup(model="m", kind="A", agent={"n": 1}, prompts={}, settings={"x": 0.5})}
    other = {"base": RoleSetup(model="m", kind="A", agent={"n": 2}, prompts={}, price="$1")}
    path = tmp_path / "a.db"
    with Store.open(path) as store:
        store.made_with(other)
        assert store.systems() == []
        for name, system in (("q1", one), ("q2", other), ("q3", one)):
            store.made_with(system)
            store.append(trace(name), "collect")
        assert store.systems() == [other, one]
        store.add([trace("imported")], "file")
    with Store.open(path) as store:
        assert store.systems() == [None, other, one]
        store.append(trace("q4"), "collect")
        assert len(list(store.traces())) == 5


def version_1(path: Path) -> None:
    """Write a store as the first version did, without any of today's code."""
    connection = sqlite3.connect(path)
    connection.executescript((MIGRATIONS / "0001_traces.sql").read_text())
    connection.executescript(
        f"""
        PRAGMA application_id = {APPLICATION_ID};
        PRAGMA user_version = 1;
        INSERT INTO traces VALUES (1, 'q1', 'mmlu', 'law', 'train', 'Who?', '["A"]', 1, 0);
        INSERT INTO traces VALUES (2, 'q2', 'mmlu', NULL, NULL, 'When?', '["B"]', 0, 1);
        INSERT INTO calls (trace, position, round, role, answer, correct, cost_nano, cost_usd)
            VALUES (1, 0, 1, 'base', 'A', 1, 48900, 4.89e-05), (2, 0, 1, 'base', NULL, 0, 0, 0.0);
        """
    )
    connection.close()


def test_a_store_of_version_1_opens_with_all_its_data(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    version_1(path)
    for expected in (2, 3):
        with Store.open(path) as store:
            first, second, *_ = store.traces()
            assert first == Trace(
                id="q1",
                task="mmlu",
                group="law",
                split="train",
                question="Who?",
                gold=["A"],
                independent=True,
                calls=[Call(round=1, role="base", answer="A", correct=True, cost_usd=4.89e-05)],
            )
            assert second.truncated
            assert store.count() == expected
            version = store.connection.execute("PRAGMA user_version").fetchone()
            assert version == (len(list(MIGRATIONS.iterdir())),)
            assert store.systems() == [None]
            if expected == 2:
                assert store.imports() == []
                store.add([trace("q3")], "new.jsonl")
            assert [log.traces for log in store.imports()] == [1]


def test_a_released_migration_never_changes() -> None:
    digests = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        for file in MIGRATIONS.iterdir()
    }
    assert digests == {
        "0001_traces.sql": "f87150b150e37a91",
        "0002_imports.sql": "def0bb987a648932",
        "0003_collection.sql": "012d41311837e4e7",
        "0004_reservations.sql": "9c43498d4128e9a8",
        "0005_largest_cost.sql": "94bc98e2a86d219c",
        "0006_systems.sql": "a09a6725467667d4",
        "0007_context.sql": "02f919c375def951",
        "0008_requests.sql": "897c270f4a9d4b01",
        "0009_thoughts.sql": "4d984e7368f3c526",
        "0010_clusters.sql": "ec717ba9ef80440d",
    }


def test_a_migration_that_fails_leaves_the_old_version(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    version_1(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE INDEX traces_by_import ON traces (id)")
    connection.close()
    with pytest.raises(StoreError, match="traces_by_import already exists"), Store.open(path):
        pass
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE name = 'imports'"
    ).fetchone() == (0,)
    connection.close()


def test_a_store_of_a_newer_version_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with Store.open(path) as store:
        store.add([trace("q1")], "file")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 11")
    connection.close()
    before = path.read_bytes()
    with (
        pytest.raises(StoreError, match=r"store version 11; this one reads up to 10\); upgrade"),
        Store.open(path),
    ):
        pass
    assert path.read_bytes() == before


def test_a_foreign_file_is_refused_untouched(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to be looked at\n" * 100)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    for path, reason in ((text, "file is not a database"), (other, "but no trace store")):
        before = path.read_bytes()
        with pytest.raises(StoreError, match=reason) as refused, Store.open(path):
            pass
        assert "\n" not in str(refused.value)
        assert path.read_bytes() == before


def test_a_path_that_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none" / "runs.db"):
        with pytest.raises(StoreError, match="unable to open"), Store.open(path):
            pass
    with (
        pytest.raises(StoreError, match="there is no such store"),
        Store.open(tmp_path / "typo.db", create=False),
    ):
        pass
    assert not (tmp_path / "typo.db").exists()


def test_grades_and_imports_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    file.write_bytes(b"the file\n")

    def call(role: str, correct: bool | None, **more: Any) -> Call:
        fields: dict[str, Any] = {"round": 2, "role": role, "model": f"m-{role}", "answer": "x"}
        return Call(correct=correct, **(fields | more))

    known = [
        trace("a", task="mmlu", group="law", calls=[call("base", True, cost_usd=0.25)]),
        trace("b", task="mmlu", calls=[call("base", False), call("guide", False, verdict=True)]),
        trace("c", calls=[call("base", False, answer=None), call("guide", True)]),
    ]
    unknown = [
        trace("d", calls=[call("base", False), call("guide", None)]),
        trace("e", split="test", calls=[call("base", None, extra={"depth": 1.0})]),
    ]
    with Store.open(":memory:") as store:
        assert (store.graded(), store.imports()) == (0, [])
        store.add(known, str(file))
        store.add(unknown, "made up")
        assert store.graded() == 3
        first, second = store.imports()
    assert (first.source, first.traces) == (str(file), 3)
    assert first.sha256 == hashlib.sha256(b"the file\n").hexdigest()
    assert (second.sha256, second.traces) == (None, 2)
    assert second.imported_at.endswith("Z")


def test_a_store_is_read_while_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Store.open(path) as reader, Store.open(path) as writer:
        writer.add((trace(f"q{i}") for i in range(3)), "a")
        reading = reader.traces()
        assert next(reading).id == "q0"
        writer.add([trace("q3")], "b")
        assert [t.id for t in reading] == ["q1", "q2"]
        assert reader.count() == 4

"""What importers of every package are held to, and what all their samples say.

A page of tests has the name of its `PACKAGE`, its `SAMPLES`, format to files, and `OF_ONE_MODEL`,
the formats whose files hold the calls of gpt-4o alone; it imports all that is named below.
"""

import csv
import gzip
import io
import json
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing import plugins
from farthing.errors import InputError
from farthing.traces.base import Trace
from farthing.traces.importers.read import (
    OWN,
    Imported,
    Supplied,
    check,
    importer,
    read_foreign,
    sniffed,
)
from farthing.traces.jsonl import encode, read_traces, write_traces
from farthing.traces.trace_kind import Checker

__all__ = [
    "folder",
    "pytest_generate_tests",
    "test_a_damaged_file_is_read_or_refused",
    "test_a_file_is_known_by_its_content",
    "test_a_file_of_another_form_is_read_or_refused",
    "test_any_value_in_any_field_is_read_or_refused",
    "test_byte_order_marks_and_gzip_change_nothing",
    "test_calls_of_a_question_come_together",
    "test_every_importer_of_the_package_has_a_sample",
    "test_no_secret_is_said_or_kept",
    "test_what_is_imported_and_exported_imports_the_same",
]

Line = dict[str, Any]
SECRET = "sk-proj-abcdefghijklmnop"
QUESTIONS = {"2 + 2?": "4", "3 + 3?": "6"}
MODELS = ("gpt-4o-mini", "gpt-4o")
REPLIES = {
    ("2 + 2?", "gpt-4o-mini"): "4",
    ("2 + 2?", "gpt-4o"): "4",
    ("3 + 3?", "gpt-4o-mini"): "7",
    ("3 + 3?", "gpt-4o"): "6",
}
"""Question and model to reply: what every sample below holds, in this order."""


def csv_text(rows: list[Line]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()}
        writer.writerow(cells)
    return file.getvalue()


def lines(rows: list[Line]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def user(question: str) -> list[Line]:
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]


REQUESTS = [
    {
        "custom_id": f"{m}-{q}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": m, "messages": user(q)},
    }
    for q, m in REPLIES
]


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Return a folder with every sample of a page, and what some of them need beside it."""
    for files in request.module.SAMPLES.values():
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "requests.jsonl").write_text(lines(REQUESTS))
    gold = "question,gold\n" + "".join(f"{q},{a}\n" for q, a in QUESTIONS.items())
    (tmp_path / "gold.csv").write_text(gold)
    return tmp_path


def read(folder: Path, name: str, **changes: Any) -> Imported:
    """Read a sample with what it needs: accepted answers, and a batch's input."""
    given: dict[str, Any] = {"gold": folder / "gold.csv"}
    if name.startswith("batch"):
        given["requests"] = (folder / "requests.jsonl",)
    return read_foreign([folder / name], None, Supplied(**given | changes))


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def only(folder: Path, name: str, content: Any, **given: Any) -> list[Trace]:
    """Return the traces of a file with this content."""
    text = content if isinstance(content, str) else json.dumps(content)
    return read_foreign([write(folder, name, text)], None, Supplied(**given)).traces


def notes(folder: Path, name: str, content: Any, **given: Any) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    return "\n".join(read_foreign([write(folder, name, text)], None, Supplied(**given)).notes)


def plain(trace: Trace) -> Any:
    return json.loads(encode(trace))


def refusal_of(folder: Path, name: str, content: Any, **given: Any) -> str:
    with pytest.raises(InputError) as refusal:
        only(folder, name, content, **given)
    return str(refusal.value).removeprefix(f"{folder}/")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hold every sample of a page to the tests that it imports from here."""
    files = [(form, name) for form, files in metafunc.module.SAMPLES.items() for name in files]
    if "name" in metafunc.fixturenames:
        metafunc.parametrize(("form", "name"), files)
    if "document_name" in metafunc.fixturenames:
        documents = [file for file in files if not file[1].endswith(".csv")]
        metafunc.parametrize(("form", "document_name"), documents)


def test_every_importer_of_the_package_has_a_sample(request: pytest.FixtureRequest) -> None:
    page = request.module
    points = distribution(page.PACKAGE).entry_points.select(group="farthing.importers")
    assert sorted(page.SAMPLES) == sorted(point.name for point in points)
    for form in page.SAMPLES:
        registered = importer(form)
        assert registered.name == form
        assert registered.meaning


def test_a_file_is_known_by_its_content(folder: Path, form: str, name: str) -> None:
    assert sniffed(folder / name) == form
    (folder / name).rename(folder / "unnamed")
    if not name.endswith("l"):  # JSON Lines of one line may as well be a document
        assert sniffed(folder / "unnamed") == form


def test_calls_of_a_question_come_together(
    folder: Path, request: pytest.FixtureRequest, form: str, name: str
) -> None:
    traces = read(folder, name).traces
    assert [trace.question for trace in traces] == list(QUESTIONS)
    for trace in traces:
        assert trace.independent
        models = [
            call.role.removeprefix("openai/").removeprefix("openai:chat:") for call in trace.calls
        ]
        assert models == (["gpt-4o"] if form in request.module.OF_ONE_MODEL else [*MODELS])
        expected = [REPLIES[trace.question, model] for model in models]
        assert [call.answer for call in trace.calls] == expected
        assert all(call.cost_usd for call in trace.calls)


def test_what_is_imported_and_exported_imports_the_same(folder: Path, form: str, name: str) -> None:
    imported = read(folder, name)
    check(imported, Checker())
    write_traces(folder / "again.jsonl.gz", imported.traces)
    assert read_traces(folder / "again.jsonl.gz") == imported.traces
    assert sniffed(folder / "again.jsonl.gz") == OWN


def test_byte_order_marks_and_gzip_change_nothing(folder: Path, form: str, name: str) -> None:
    plain = (folder / name).read_bytes()
    kept = read(folder, name).traces
    marked = write(
        folder, f"batch-{name}" if name == "batch.jsonl" else f"m-{name}", b"\xef\xbb\xbf" + plain
    )
    assert read(folder, marked.name).traces == kept
    packed = write(folder, f"{marked.name}.gz", gzip.compress(plain))
    assert read(folder, packed.name).traces == kept


def test_no_secret_is_said_or_kept(folder: Path, form: str, name: str) -> None:
    imported = read(folder, name)
    said = " ".join(imported.notes) + "".join(encode(trace).decode() for trace in imported.traces)
    assert SECRET not in said


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(
    folder: Path, form: str, name: str, data: st.DataObject
) -> None:
    whole = (folder / name).read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 40, len(whole))) | st.just(len(whole)))
    junk = data.draw(
        st.binary(max_size=4) | st.text(max_size=4).map(lambda t: t.encode("utf-8", "replace"))
    )
    path = write(folder, f"damaged-{name}", whole[:start] + junk + whole[end:])
    assert_read_or_refused(path, data.draw(st.sampled_from([None, form])))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5)
    | st.sampled_from(["\ud800", "\0", "", "[", "[1]", '{"a": 1}', "base", "policy-x", "1e999"]),
    lambda some: st.lists(some, max_size=2) | st.dictionaries(st.text(max_size=3), some),
    max_leaves=4,
)  # fmt: skip


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_value_in_any_field_is_read_or_refused(
    folder: Path, form: str, document_name: str, data: st.DataObject
) -> None:
    name = document_name
    text = (folder / name).read_text(encoding="utf-8")
    many = name.endswith("l")
    document = [json.loads(line) for line in text.splitlines()] if many else json.loads(text)
    parent, key = data.draw(st.sampled_from(list(spots(document))))
    parent[key] = data.draw(JSON_VALUES)
    changed = "\n".join(map(json.dumps, document)) if many else json.dumps(document)
    path = write(folder, f"changed-{name}", changed)
    assert_read_or_refused(path, data.draw(st.sampled_from([None, form])))


def spots(value: Any) -> list[tuple[Any, Any]]:
    """Return every (container, key) within a JSON value."""
    inside: list[Any] = []
    if isinstance(value, dict):
        inside = list(value)
    elif isinstance(value, list):
        inside = list(range(len(value)))
    return [s for key in inside for s in [(value, key), *spots(value[key])]]


def assert_read_or_refused(path: Path, form: str | None) -> None:
    try:
        imported = read_foreign([path], form)
        check(imported, Checker())
    except InputError:
        return
    assert imported.traces
    write_traces(path.with_suffix(".again.jsonl"), imported.traces)
    assert read_traces(path.with_suffix(".again.jsonl")) == imported.traces


@pytest.mark.parametrize("form", plugins.names("importers"))
def test_a_file_of_another_form_is_read_or_refused(
    folder: Path, request: pytest.FixtureRequest, form: str
) -> None:
    for files in request.module.SAMPLES.values():
        for name in files:
            assert_read_or_refused(folder / name, form)

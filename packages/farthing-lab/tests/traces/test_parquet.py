import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, TraceFormatError
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble, load
from farthing.traces.base import Trace
from farthing.traces.fingerprint import fingerprint
from farthing.traces.parquet import iter_parquet, read_parquet, write_parquet
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

AssertSame = Callable[[TraceArrays, TraceArrays], None]
CONFIG = preset("hotpotqa-llama2-7b").config


def generated(n: int, seed: int = 0) -> TraceArrays:
    return generate(CONFIG, n, np.random.default_rng(seed))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.parquet"


@settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_arrays_come_back_the_same(
    any_file: st.SearchStrategy[list[Trace]],
    assert_same: AssertSame,
    path: Path,
    data: st.DataObject,
) -> None:
    arrays = assemble(data.draw(any_file))
    write_parquet(path, arrays)
    assert fingerprint(load(path)) == fingerprint(arrays)
    arrays = replace(arrays, question=None)  # texts stay in the records
    assert_same(read_parquet(path), arrays)
    assert_same(load(path), arrays)


@pytest.mark.parametrize("rows", [1, 7, 30, 1000])
def test_chunks_are_the_whole_cut_in_pieces(path: Path, rows: int, assert_same: AssertSame) -> None:
    arrays = generated(30)
    write_parquet(path, (arrays.take(np.arange(i, i + 10)) for i in (0, 10, 20)))
    assert_same(read_parquet(path), arrays)
    chunks = list(iter_parquet(path, rows))
    assert max(len(chunk) for chunk in chunks) <= rows
    start = 0
    for chunk in chunks:
        assert_same(chunk, arrays.take(np.arange(start, start + len(chunk))))
        start += len(chunk)
    assert start == 30


def test_another_library_reads_the_same_numbers(path: Path) -> None:
    """The file is plain Parquet: lists of numbers, money in whole nano-dollars."""
    arrays = generated(5)
    write_parquet(path, arrays)
    rows = pq.read_table(path).to_pylist()
    assert [row["id"] for row in rows] == arrays.ids.tolist()
    assert [row["cost_nano"] for row in rows] == arrays.cost_nano.reshape(5, -1).tolist()
    assert [row["correct"] for row in rows] == arrays.correct.reshape(5, -1).tolist()
    assert all(isinstance(nano, int) for nano in rows[0]["cost_nano"])


def test_reading_in_chunks_does_not_hold_the_file(path: Path) -> None:
    write_parquet(path, (generated(2000, seed) for seed in range(20)))
    pa.default_memory_pool().release_unused()
    held = [pa.total_allocated_bytes() for _ in iter_parquet(path, 500)]
    whole = read_parquet(path)
    size = whole.cost_nano.nbytes + whole.answer.nbytes + whole.correct.nbytes
    assert max(held) < size


def interrupted() -> Iterator[TraceArrays]:
    yield generated(3)
    raise KeyboardInterrupt


def test_a_file_is_written_whole_or_not_at_all(path: Path) -> None:
    write_parquet(path, generated(3))
    before = path.read_bytes()
    with pytest.raises(InputError, match="chunk 2 has other columns"):
        write_parquet(path, [generated(3), replace(generated(3), roles=("a", "b"))])
    with pytest.raises(InputError, match="there are no traces to write"):
        write_parquet(path, [])
    with pytest.raises(KeyboardInterrupt):
        write_parquet(path, interrupted())
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written"):
        write_parquet(path.parent / "nowhere" / "runs.parquet", generated(3))


def spoil(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    write_parquet(path, generated(4))
    pq.write_table(change(pq.read_table(path)), path)


def put(name: str, values: list[Any]) -> Callable[[pa.Table], pa.Table]:
    """Put a column of one value a question, filled with the same as long as it is."""

    def change(table: pa.Table) -> pa.Table:
        place, field = table.schema.get_field_index(name), table.schema.field(name)
        if pa.types.is_fixed_size_list(field.type):
            column = [[value] * field.type.list_size for value in values]
        else:
            column = values
        return table.set_column(place, field, pa.array(column, type=field.type))

    return change


def header(**more: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        said = msgspec.json.decode(table.schema.metadata[b"farthing.traces"]) | more
        return table.replace_schema_metadata({b"farthing.traces": msgspec.json.encode(said)})

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (put("cost_nano", [0, 0, -1, 0]), "line 3, cost_nano: holds an impossible value"),
        (put("answer", [-1, -1, -1, -1]), "correct: holds an impossible value"),
        (put("recorded", [4, 5, 4, 4]), "line 2, recorded: holds an impossible value"),
        (put("recorded", [4, 4, 4, -1]), "line 4, recorded: holds an impossible value"),
        (put("group", [0, -1, -1, -1]), "line 1, group: holds an impossible value"),
        (put("split", [3, 0, 0, 0]), "line 1, split: holds an impossible value"),
        (put("split", [0, None, 0, 0]), "line 1, split: holds nulls"),
        (put("cost_nano", [0, None, 0, 0]), "line 1, cost_nano: holds nulls"),
        (lambda t: t.drop_columns("correct"), "line 1, correct: is missing"),
        (lambda t: t.replace_schema_metadata(None), "metadata: was not written by `farthing"),
        (header(version=5), "version: is 5, this farthing reads 1 to 4"),
        (put("missing_because", [0, 3, 0, 0]), "line 2, missing_because: holds an impossible"),
        (put("largest_cost_nano", [0, 0, -1, 0]), "line 3, largest_cost_nano: holds an impossible"),
        (header(horizon=3), "answer: is missing or no longer fixed_size_list"),
        (header(surprise=1), "metadata: was not written by"),
        (lambda t: t.slice(0, 0), ": is empty"),
    ],
)
def test_a_file_that_was_changed_is_refused(
    path: Path, change: Callable[[pa.Table], pa.Table], problem: str
) -> None:
    spoil(path, change)
    with pytest.raises(TraceFormatError, match=re.escape(str(path)) + ".*" + problem):
        read_parquet(path)


def test_a_file_of_the_first_version_has_no_largest_costs(
    path: Path, assert_same: AssertSame
) -> None:
    def first_version(table: pa.Table) -> pa.Table:
        return header(version=1)(table.drop_columns("largest_cost_nano"))

    spoil(path, first_version)
    assert_same(read_parquet(path), generated(4))


@pytest.mark.parametrize("content", [b"", b"no parquet at all", None])
def test_a_file_that_is_none_is_refused(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TraceFormatError, match=": cannot be read as Parquet"):
        read_parquet(path)


def test_a_damaged_file_is_refused(path: Path) -> None:
    write_parquet(path, generated(500))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceFormatError, match="cannot be read as Parquet"):
        read_parquet(path)


def test_without_pyarrow_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from farthing.traces.assemble import load\n"
        "from farthing.errors import MissingExtraError\n"
        "try:\n    load('runs.parquet')\n"
        "except MissingExtraError as error:\n    print(error)"
    )
    said = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert said.startswith("Parquet needs an optional dependency: ")
    assert said.endswith('pip install "./packages/farthing[parquet]"\n')

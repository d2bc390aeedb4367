"""The sample log is what its script draws, has the holes of a real one, and gives a saving."""

import gzip
import runpy
import warnings
from pathlib import Path

import pytest

import farthing as ft
from farthing.errors import InputError
from farthing.traces import sample

ROOT = Path(__file__).parents[4]
PACKED = ROOT / "packages/farthing/src/farthing/traces/sample/tickets.jsonl.gz"


def test_the_log_that_ships_is_what_its_script_draws_and_small() -> None:
    script = runpy.run_path(str(ROOT / "benchmarks/sample_log.py"))
    assert gzip.decompress(PACKED.read_bytes()) == script["written"]()
    assert PACKED.stat().st_size < 300_000


@pytest.mark.slow
def test_it_reads_as_a_log_with_holes(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        traces = ft.read_traces(ft.sample_log(tmp_path / "log.jsonl"))
    named = " ".join(str(each.message) for each in said)
    for lack in ("no question is graded", "calls failed", "costs are not known of large"):
        assert lack in named
    assert len(traces) == 2_000
    arrays = traces.arrays
    assert arrays.roles == ("small", "medium", "large")
    asked = arrays.made[:, 0].mean(axis=0)
    assert asked[2] == 1
    assert 0.93 < asked[1] < asked[0] < 0.99


@pytest.mark.slow
def test_recommend_proves_a_saving_on_it(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traces = ft.read_traces(ft.sample_log(tmp_path / "log.jsonl"))
    found = ft.recommend(traces, ft.Agreement("large", 0.05))
    said = found.to_json()
    assert said["saved"] > 0.4
    assert found.certificate is not None
    assert found.certificate.promises


def test_a_file_of_ones_own_is_not_written_over(tmp_path: Path) -> None:
    file = tmp_path / sample.NAME
    assert ft.sample_log(file) == ft.sample_log(str(file)) == file
    file.write_text("mine")
    with pytest.raises(InputError, match="not the sample log; name another file"):
        ft.sample_log(file)
    assert file.read_text() == "mine"

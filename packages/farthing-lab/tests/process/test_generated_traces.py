"""Generated records, by way of the interchange form, are the generated arrays."""

from pathlib import Path

import numpy as np
import pytest

from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble, load
from farthing.traces.fingerprint import fingerprint
from farthing.traces.jsonl import write_traces
from farthing_lab.generator.generate import generate, generate_traces
from farthing_lab.generator.presets import PRESETS


def same(found: TraceArrays, expected: TraceArrays) -> None:
    for name in ("ids", "answer", "correct", "cost_nano", "recorded", "independent", "split"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert (found.roles, found.models) == (expected.roles, expected.models)
    assert set(found.signals) == set(expected.signals)
    for name, values in expected.signals.items():
        np.testing.assert_array_equal(found.signals[name], values, name)
    assert fingerprint(found) == fingerprint(expected)


@pytest.mark.parametrize("name", PRESETS)
def test_records_assemble_to_the_arrays_of_the_same_seed(name: str, tmp_path: Path) -> None:
    config = PRESETS[name].config
    expected = generate(config, 60, np.random.default_rng(3))
    records = generate_traces(config, 60, np.random.default_rng(3))
    same(assemble(records), expected)
    write_traces(tmp_path / "made-up.jsonl.gz", records)
    same(load(tmp_path / "made-up.jsonl.gz"), expected)


def test_the_text_of_a_question_tells_nothing() -> None:
    records = generate_traces(PRESETS["mmlu-llama2-7b"].config, 30, np.random.default_rng(0))
    assert {record.question for record in records} == {""}
    for record in records:
        assert record.calls[0].answer == "candidate 1"
        assert not record.gold
        assert not record.independent
        by_answer = {call.answer: call.correct for call in record.calls}
        assert all(call.correct == by_answer[call.answer] for call in record.calls)
        assert sum(bool(right) for right in by_answer.values()) <= 1

"""Marks against a plain loop: bundles keep them, so that they may never change."""

import hashlib
from dataclasses import replace

import numpy as np

from farthing.traces.fingerprint import question_hashes
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset


def test_a_mark_is_the_hash_of_what_was_recorded() -> None:
    traces = generate(preset("hotpotqa-llama2-7b").config, 30, np.random.default_rng(0))
    expected = set()
    for i, name in enumerate(traces.ids.tolist()):
        said = name.encode() + b"\0"
        for column in (traces.answer, traces.cost_nano):
            for value in column[i].ravel().tolist():
                said += int(value).to_bytes(8, "little", signed=True)
        expected.add(int.from_bytes(hashlib.sha256(said).digest()[:8], "little"))
    assert question_hashes(traces) == expected


def test_a_question_is_known_again_by_another_grade() -> None:
    traces = generate(preset("hotpotqa-llama2-7b").config, 30, np.random.default_rng(0))
    assert question_hashes(
        replace(traces, correct=~traces.correct, grade="same as base")
    ) == question_hashes(traces)


def test_no_questions_have_no_marks() -> None:
    traces = generate(preset("hotpotqa-llama2-7b").config, 3, np.random.default_rng(0))
    assert question_hashes(traces.rows(slice(0))) == frozenset()

"""A mark for each question, so that it can be told later whether it was used before."""

import hashlib

import numpy as np

from farthing.traces.arrays import BoolArray, IntArray, TraceArrays

Marks = frozenset[int]
"""64 bits for each question."""


def question_hashes(arrays: TraceArrays) -> Marks:
    """Return the first 64 bits of the SHA-256 of each question's id, answers and costs.

    The same id with other recorded calls has another mark: it is another trace. Grades do not
    count: the same question may be graded later, or by another grade.

    >>> import numpy as np
    >>> from farthing.process.generator.generate import generate
    >>> from farthing.process.generator.presets import preset
    >>> config = preset("mmlu-llama2-7b").config
    >>> seeds = (np.random.default_rng(seed) for seed in (0, 1))
    >>> one, other = (question_hashes(generate(config, 50, rng)) for rng in seeds)
    >>> len(one), len(one & other)
    (50, 0)
    """
    return frozenset(_each(arrays))


def seen_before(arrays: TraceArrays, known: Marks) -> BoolArray:
    """Return which questions have one of these marks, [n]."""
    return np.array([mark in known for mark in _each(arrays)], dtype=bool)


def _each(arrays: TraceArrays) -> list[int]:
    columns = (arrays.answer, arrays.cost_nano)
    rows = np.stack([column.astype("<i8") for column in columns], axis=1)  # [n, 2, T, L]
    return [_mark(name, values) for name, values in zip(arrays.ids.tolist(), rows, strict=True)]


def _mark(name: str, recorded: IntArray) -> int:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(recorded.tobytes())
    return int.from_bytes(digest.digest()[:8], "little")

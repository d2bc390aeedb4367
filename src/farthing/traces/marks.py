"""A mark for each question, so that it can be told later whether it was used before."""

import hashlib

from farthing.traces.arrays import TraceArrays

Marks = frozenset[int]
"""64 bits for each question."""


def marks(arrays: TraceArrays) -> Marks:
    """Return the first 64 bits of the SHA-256 of each question's id, answers, grades and costs.

    The same id with other recorded calls has another mark: it is another trace.

    >>> import numpy as np
    >>> from farthing.environments.generator import generate
    >>> from farthing.environments.presets import preset
    >>> config = preset("mmlu-llama2-7b").config
    >>> one, other = (marks(generate(config, 50, np.random.default_rng(s))) for s in (0, 1))
    >>> len(one), len(one & other)
    (50, 0)
    """
    return frozenset(_mark(arrays, i, name) for i, name in enumerate(arrays.ids.tolist()))


def _mark(arrays: TraceArrays, i: int, name: str) -> int:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass") + b"\0")
    for values in (arrays.answer[i], arrays.correct[i], arrays.cost_nano[i]):
        digest.update(values.astype("<i8").tobytes())
    return int.from_bytes(digest.digest()[:8], "little")

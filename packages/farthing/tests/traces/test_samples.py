"""Sample traces: read, laid out, described, and refused where they are of no use."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farthing.errors import InputError, TraceFormatError
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble, load
from farthing.traces.base import Call, Trace
from farthing.traces.pool import is_pool, is_samples, leaders, refuse_samples, sampled
from farthing.traces.trace_kind import recorded_rounds, shape_of


def samples(role: str, answers: str, name: str = "q", **kept: Any) -> Trace:
    calls = [Call(round=k, role=role, answer=a, cost_usd=1e-6) for k, a in enumerate(answers, 1)]
    return Trace(id=name, calls=calls, gold=["a"], **{"independent": True, **kept})


@pytest.mark.parametrize("role", ["base", "guide", "gpt-4o"])
def test_independent_calls_of_one_role_are_samples(role: str) -> None:
    assert shape_of(samples(role, "aba")) == "samples"
    arrays = assemble([samples(role, "aba"), samples(role, "bbb", "r")])
    assert (arrays.roles, arrays.answer.shape) == ((role,), (2, 3, 1))
    assert is_samples(arrays)
    assert not is_pool(arrays)
    answer, right, cost = sampled(arrays)
    assert answer.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert right.sum(axis=1).tolist() == [2, 0]
    assert cost.tolist() == [[1_000] * 3] * 2


def test_what_is_not_independent_or_has_a_partner_is_something_else() -> None:
    assert shape_of(samples("base", "ab", independent=False)) == "thinking"
    assert shape_of(samples("x", "ab", independent=False)) == "thinking"
    assert shape_of(samples("x", "a")) == "pool"
    assert shape_of(samples("base", "a", truncated=True)) == "paper"


def test_a_missing_sample_or_another_shape_is_refused() -> None:
    calls = [Call(round=1, role="x", answer="a"), Call(round=2, role="y", answer="a")]
    with pytest.raises(TraceFormatError, match='samples say "independent": true'):
        assemble([Trace(id="p", gold=["a"], calls=calls)])
    gap = Trace(
        id="g",
        gold=["a"],
        independent=True,
        calls=[Call(round=1, role="x", answer="a"), Call(round=3, role="x", answer="a")],
    )
    with pytest.raises(TraceFormatError, match="sample 2 is missing"):
        assemble([gap])
    pool = Trace(
        id="p",
        gold=["a"],
        calls=[Call(round=1, role="x", answer="a"), Call(round=1, role="y", answer="a")],
    )
    with pytest.raises(TraceFormatError, match="shape 'pool', but line 1 has 'samples'"):
        assemble([samples("x", "aa"), pool])
    with pytest.raises(TraceFormatError, match="round 3 is missing"):
        assemble([samples("x", "aaa"), samples("x", "aa", "short")])


def test_fewer_samples_may_be_marked_truncated() -> None:
    short = samples("x", "aa", "short", truncated=True)
    arrays = assemble([samples("x", "aaa"), short])
    assert arrays.recorded.tolist() == [3, recorded_rounds(short)] == [3, 2]


def test_leaders_are_the_counted_votes() -> None:
    answer = np.random.default_rng(0).integers(-1, 3, (50, 9))
    got = leaders(answer)
    for row, found in zip(answer, got, strict=True):
        for k in range(9):
            votes = [int((row[: k + 1] == one).sum()) for one in range(3)]
            assert (found[k] == -1) == (max(votes) == 0)
            assert max(votes) == 0 or votes[found[k]] == max(votes)


def written(folder: Path, n: int = 40, k: int = 8) -> Path:
    rng, path = np.random.default_rng(0), folder / "samples.jsonl"
    with path.open("w") as file:
        for i in range(n):
            sure = rng.choice([0.4, 0.95])
            calls = [
                {
                    "round": t + 1,
                    "role": "base",
                    "cost_usd": 0.001,
                    "answer": "a" if rng.random() < sure else str(rng.choice(["b", "c"])),
                }
                for t in range(k)
            ]
            line = {"id": f"q{i}", "gold": ["a"], "independent": True, "calls": calls}
            file.write(json.dumps(line) + "\n")
    return path


@pytest.mark.slow
def test_the_recorded_file_is_read(recorded_samples: TraceArrays | None) -> None:
    if recorded_samples is None:
        pytest.skip("shared/data/traces is absent")
    assert recorded_samples.answer.shape == (500, 40, 1)
    answer, right, _ = sampled(recorded_samples)
    vote = leaders(answer)[:, -1]
    assert right.mean() == pytest.approx(0.8035)
    assert ((answer == vote[:, None]) & right).any(axis=1).mean() == pytest.approx(0.83, abs=0.005)


@pytest.fixture
def recorded_samples() -> TraceArrays | None:
    path = Path(__file__).parents[5] / "shared/data/traces/lastletters-forty-samples.jsonl.gz"
    return load(path) if path.is_file() else None


def test_where_several_models_are_needed_they_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`farthing study samples` says how many"):
        refuse_samples(load(written(tmp_path)))
    with pytest.raises(InputError, match="are no samples"):
        sampled(assemble([samples("x", "a")]))

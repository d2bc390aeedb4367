"""Every door that proves counts the proofs made on the questions of a try."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.api.recommendation import Recommendation
from farthing.promises.levels import exact_level
from farthing.runtime.tried import Tried, remember
from farthing.traces.jsonl import read_traces
from farthing.traces.store import Store

Farthing = Callable[..., Any]
TENTH = Fraction(1, 10)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write the store of a try: 500 questions to two models, of which one is cheap and errs."""
    rng, lines = np.random.default_rng(0), []
    for k in range(500):
        right, cheap = str(k % 7), str(k % 7 if rng.random() < 0.97 else 9)
        calls = [
            {"round": 1, "role": "small", "answer": cheap, "cost_usd": 1e-5},
            {"round": 1, "role": "large", "answer": right, "cost_usd": 1e-3},
        ]
        lines.append(json.dumps({"id": f"q{k}", "calls": calls, "independent": True}))
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    path = tmp_path / "a.try.db"
    with Store.open(path) as opened:
        opened.add(read_traces(tmp_path / "a.jsonl"), "a.jsonl")
        remember(opened, Tried(reference="large", task="text", models={}, prices={}))
    return path


def delta(found: Recommendation) -> Fraction:
    """Return what all candidates of a proof may spend together."""
    assert found.certificate is not None
    promise: Any = found.certificate.promise
    return exact_level(promise.delta)


@pytest.mark.slow
def test_python_counts_proofs_as_the_command_does(store: Path) -> None:
    """Proof k has 0.6 / k^2 of delta; the same again is no new one, a slice of the questions is."""
    traces = ft.read_traces(store)
    first, second = ft.Agreement("large", 0.1), ft.Agreement("large", 0.2)
    asked = [(traces, first), (traces, second), (traces, first), (traces[:450], first)]
    found = [ft.recommend(some, promise) for some, promise in asked]
    spent = [Fraction(6, 10) / k**2 * TENTH for k in (1, 2, 1, 3)]
    assert [delta(one) for one in found] == spent
    assert all("this is proof" in " ".join(one.found.notes) for one in found)


@pytest.mark.slow
def test_a_promise_of_another_kind_counts_as_well(store: Path, farthing: Farthing) -> None:
    ft.recommend(ft.read_traces(store), ft.Agreement("large", 0.1))
    said = farthing("recommend", store, "--promise", "agreement", "--epsilon", "0.1", "--json")
    assert json.loads(said.out)["proof"] == 2


def test_a_calibration_counts_each_time(store: Path) -> None:
    traces = ft.read_traces(store)
    policy = ft.fit("pool-gain", traces[:200], 0.2, grade="same as large")
    for k in (1, 2):
        with pytest.warns(UserWarning, match=f"this is proof {k} on questions of a.try.db"):
            proved = policy.calibrate(traces[200:], ft.Agreement("large", 0.2))
        promise: Any = proved.certificate.promise
        assert exact_level(promise.delta) == Fraction(6, 10) / k**2 * TENTH


@pytest.mark.slow
def test_questions_of_no_try_are_proved_at_all_of_delta(tmp_path: Path, store: Path) -> None:
    plain = ft.read_traces(tmp_path / "a.jsonl")
    assert delta(ft.recommend(plain, ft.Agreement("large", 0.1))) == TENTH

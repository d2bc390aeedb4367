"""Our methods against packages that their authors published; `make check-extras` brings them."""

import warnings
from fractions import Fraction
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from farthing.methods.base import Silent
from farthing.methods.pool import PoolTables
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing_lab.methods.cascades import auto_mix
from farthing_lab.methods.routers import route_llm
from farthing_lab.methods.routers.route_llm import Kind, RouteLlmLearner, RouteLlmPolicy

WEAK, STRONG = "weak", "strong"
ROUTELLM = "routellm", "openai", "transformers", "datasets"
"""The package, and what it imports."""


def reply(role: str, *, right: bool) -> Call:
    cost = {WEAK: 0.001, STRONG: 0.01}[role]
    return Call(round=1, role=role, answer="yes" if right else "no", cost_usd=cost)


@pytest.fixture
def vectors(monkeypatch: pytest.MonkeyPatch) -> FloatArray:
    """Vectors of 300 questions whose texts are their numbers."""
    rng = np.random.default_rng(0)
    planted = rng.normal(size=(300, 6))
    planted /= np.linalg.norm(planted, axis=1, keepdims=True)

    def embedded(traces: TraceArrays, _embedding: str) -> FloatArray:
        assert traces.question is not None
        return np.asarray(planted[[int(text) for text in traces.question]])

    monkeypatch.setattr(route_llm, "embedded", embedded)
    return planted


@pytest.fixture
def questions(vectors: FloatArray) -> TraceArrays:
    rng = np.random.default_rng(1)
    weak = rng.random(300) < 0.3 + 0.5 * (vectors[:, 0] > 0)
    strong = rng.random(300) < 0.85
    traces = [
        Trace(
            id=str(i),
            question=str(i),
            gold=["yes"],
            calls=[reply(WEAK, right=weak[i]), reply(STRONG, right=strong[i])],
        )
        for i in range(300)
    ]
    return assemble(traces)


def routers(questions: TraceArrays, kind: Kind) -> tuple[TraceArrays, TraceArrays, RouteLlmPolicy]:
    train, test = questions.take(np.arange(200)), questions.take(np.arange(200, 300))
    made = RouteLlmLearner(kind, STRONG)
    router = made.fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(router, RouteLlmPolicy)
    return train, test, router


@pytest.fixture
def routellm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package; it wants a key when it is imported."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with warnings.catch_warnings(action="ignore"):
        return import_module("routellm.routers.routers")


def served(vector: np.ndarray) -> Any:
    """A client whose embedding of everything is this vector."""
    found = SimpleNamespace(data=[SimpleNamespace(embedding=vector.tolist())])
    return SimpleNamespace(embeddings=SimpleNamespace(create=lambda **_: found))


@pytest.mark.extras(*ROUTELLM)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_similarity_router_is_the_packages(
    routellm: Any,
    questions: TraceArrays,
    vectors: FloatArray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    train, test, ours = routers(questions, "similarity")
    theirs = object.__new__(routellm.SWRankingRouter)
    outcome = train.correct[:, 0, 1].astype(int) - train.correct[:, 0, 0]
    winner = np.array(["tie", "model_a", "model_b"])[outcome]
    theirs.arena_df = pd.DataFrame({"model_a": 1, "model_b": 0, "winner": winner})
    theirs.arena_conv_embedding = vectors[:200]
    theirs.embedding_model = ""
    theirs.model2tier = {WEAK: 0, STRONG: 1}
    theirs.weak_model, theirs.strong_model = WEAK, STRONG
    found = []
    for vector in vectors[200:225]:
        monkeypatch.setattr(routellm, "OPENAI_CLIENT", served(vector))
        found.append(theirs.calculate_strong_win_rate(""))
    np.testing.assert_allclose(found, ours.score(test)[:25], atol=1e-4)


@pytest.mark.extras(*ROUTELLM)
def test_the_factorisation_router_is_the_packages_model(
    routellm: Any,
    questions: TraceArrays,
    vectors: FloatArray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = import_module("routellm.routers.matrix_factorization.model")
    assert model.MFModel is routellm.MFModel
    _, test, ours = routers(questions, "factorisation")
    d = len(ours.weights)
    theirs = model.MFModel(dim=d, num_models=2, text_dim=d, num_classes=1, use_proj=True)
    with torch.no_grad():
        theirs.P.weight[:] = torch.tensor([[-1.0], [1.0]]) * torch.ones(d)
        theirs.text_proj[0].weight[:] = torch.eye(d)
        theirs.classifier[0].weight[:] = torch.tensor(ours.weights) * np.sqrt(d) / 2
    found = []
    for vector in vectors[200:]:
        monkeypatch.setattr(model, "OPENAI_CLIENT", served(vector))
        found.append(theirs.pred_win_rate(1, 0, ""))
    np.testing.assert_allclose(found, ours.score(test), atol=1e-6)


@pytest.mark.extras("automix")
def test_bins_are_escalated_in_the_packages_order(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = import_module("automix.automix_methods")
    monkeypatch.setattr(methods, "gaussian_filter", lambda values, **_: values)
    counts = np.array([[120, 8], [40, 24], [60, 96], [12, 200]])  # bin, first model wrong or right
    rows = [
        (b, state, i % 4 < (3 if state else 2))
        for b in range(auto_mix.BINS)
        for state in (0, 1)
        for i in range(counts[b, state])
    ]
    seen, first, second = np.array(rows, dtype=int).T
    data = pd.DataFrame(
        {"p_ver_13b": (seen + 0.5) / 4, "llama13b_f1": first, "llama70b_f1": second}
    )
    points = methods.GreedyPOMDP(auto_mix.BINS).generate_points(data)
    theirs = {tuple(np.flatnonzero(point[: auto_mix.BINS])) for point in points}
    pool = PoolTables(np.stack([first, second], 1).astype(bool), np.ones((len(seen), 2)))
    chance = auto_mix._observation_model(np.stack([seen, seen], axis=1), pool.right)
    _, plans = auto_mix._solve(pool, chance, (0, 1), np.linspace(-0.5, 1, 400))
    ours = {tuple(np.flatnonzero(plan[0])) for plan in plans}
    assert ours >= {(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3)}
    assert ours <= theirs | {()}

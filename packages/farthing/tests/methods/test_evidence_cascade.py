"""The evidence cascade: its regressions against other people's, and its decisions against play."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from made_up_pool import questions
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge

import farthing as ft
from farthing.errors import InputError
from farthing.features.ngrams import DIMENSIONS, ngram_counts
from farthing.methods import text_regression
from farthing.methods.evidence.learner import (
    LINEAR_PULL,
    LOGISTIC_PULL,
    EvidenceLearner,
    _Lesson,
    binned,
    fit_net_loss,
)
from farthing.methods.evidence.policy import (
    ASK,
    CLIP,
    PASS,
    STOP,
    WIN,
    Ends,
    EvidencePolicy,
    choose,
    net_loss,
)
from farthing.methods.text_regression import STRENGTHS, fit_text
from farthing.process.play import play, points_of
from farthing.traces.arrays import NO_ANSWER, BoolArray, FloatArray, TraceArrays

PRICE = np.array([1, 2, 20]) * 10**5
ENDS: tuple[Ends, ...] = ("reference", "last", "text")
WORDS = {True: ("prove the theorem", "lemma"), False: ("name the capital", "river")}


def pool(n: int, seed: int = 0, *, silent: float = 0.1) -> TraceArrays:
    """Return questions whose texts say which are hard; cheap models seldom have those right."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.4
    skill = np.where(hard[:, None], [0.2, 0.4, 0.95], [0.93, 0.95, 0.98])
    right = rng.random((n, 3)) < skill
    sure = np.clip(np.where(right, 0.8, 0.55) + rng.normal(0, 0.2, (n, 3)), 0.02, 0.98)
    answer = np.where(right, 0, rng.integers(1, 4, (n, 3)))
    answer = np.where(rng.random((n, 3)) < silent, NO_ANSWER, answer)
    texts = [" ".join([*WORDS[bool(one)], str(rng.integers(10_000))]) for one in hard]
    return TraceArrays(
        ids=np.array([f"q{seed}-{i}" for i in range(n)]),
        roles=("small", "medium", "large"),
        models=("small", "medium", "large"),
        answer=answer[:, None].astype(np.int16),
        correct=(answer == 0)[:, None],
        cost_nano=rng.integers(PRICE * 9 // 10, PRICE * 11 // 10, (n, 3))[:, None],
        signals={
            "confidence": sure[:, None].astype(np.float32),
            "output_tokens": rng.integers(1, 400, (n, 1, 3)).astype(np.float32),
        },
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
        question=np.array(texts, dtype=object),
    )


TRAIN, TEST = pool(300), pool(150, seed=1, silent=0.25)


def without_text(traces: TraceArrays) -> TraceArrays:
    return replace(traces, question=None)


@cache
def lesson(*, text: bool) -> _Lesson:
    return _Lesson.of(TRAIN if text else without_text(TRAIN), 2, 0)


def tried(row: tuple[int, ...], ends: Ends, *, text: bool) -> EvidencePolicy:
    known = lesson(text=text)
    return known.policy(known.tried(row, ends))


ROWS = [
    (row, ends, text)
    for row in ((0,), (1,), (0, 1))
    for ends in ENDS
    for text in (True, False)
    if text or ends != "text"
]


# what is decided


@pytest.mark.slow
@pytest.mark.parametrize("silent", [0.0, 0.25])
@pytest.mark.parametrize(("row", "ends", "text"), ROWS)
def test_all_points_at_once_are_those_of_play_call_by_call(
    row: tuple[int, ...], ends: Ends, text: bool, silent: float
) -> None:
    policy, test = tried(row, ends, text=text), pool(150, seed=1, silent=silent)
    test = test if text else without_text(test)
    assert policy.words.reads == text
    values = policy.parameters
    at = np.unique(np.linspace(0, len(values) - 1, 8).astype(int))
    played = [play(policy, test, float(values[g]), "allow") for g in at]
    one, other = points_of(values[at], played), policy.points(test)
    names = ["cost_nano", "correct", "covered", "calls", "set_size"]
    names += [] if silent else ["answered"]  # a silence that is chosen is played as an answer
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[:, at], name)
    assert ends == "last" or len(np.unique(other.cost_nano.mean(axis=0))) > 1


@pytest.mark.parametrize(("row", "ends", "text"), ROWS)
def test_a_saved_and_loaded_policy_decides_the_same(
    row: tuple[int, ...], ends: Ends, text: bool
) -> None:
    policy, test = tried(row, ends, text=text), TEST if text else without_text(TEST)
    again = EvidencePolicy.from_state(*policy.to_state())
    for one, other in zip(
        vars(policy.points(test)).values(), vars(again.points(test)).values(), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("text", [True, False])
def test_so_it_does_from_a_folder(tmp_path: Path, text: bool) -> None:
    train, test = (one if text else without_text(one) for one in (TRAIN, TEST))
    policy = ft.fit("evidence-cascade", questions(train))
    policy.save(tmp_path / "b")
    again = ft.load(tmp_path / "b").bundle.policy
    assert isinstance(policy.bundle.policy, EvidencePolicy)
    assert isinstance(again, EvidencePolicy)
    assert again.words.reads == text
    one, other = policy.bundle.policy.points(test), again.points(test)
    np.testing.assert_array_equal(one.cost_nano, other.cost_nano)
    np.testing.assert_array_equal(one.correct, other.correct)


def test_the_text_sends_hard_questions_on_at_once_and_saves_calls() -> None:
    """What the text says of a question spares a call that would be made in vain."""
    with_text, without = (tried((0,), "reference", text=text) for text in (True, False))
    hard = np.array(["theorem" in text for text in TEST.question])  # type: ignore[union-attr]
    asked = with_text.points(TEST)
    at_once = asked.cost_nano == TEST.cost_nano[:, 0, 2:]
    each = at_once[hard].mean(axis=0), at_once[~hard].mean(axis=0)
    assert each[0].max() > 0.4
    assert each[1].max() < 0.05
    blind = without.points(without_text(TEST))
    assert not (blind.cost_nano == TEST.cost_nano[:, 0, 2:]).any()
    learner = EvidenceLearner(strong="large")
    scores = [
        learner.rehearse(train, 0).figures.score(0.02, 500)
        for train in (TRAIN, without_text(TRAIN))
    ]
    assert scores[0] < scores[1]


def test_texts_that_say_nothing_are_not_read() -> None:
    shuffled = np.random.default_rng(0).permutation(TRAIN.question)  # type: ignore[arg-type]
    policy = EvidenceLearner(strong="large").learn(replace(TRAIN, question=shuffled), 0)
    blind = EvidenceLearner(strong="large").learn(without_text(TRAIN), 0)
    assert isinstance(policy, EvidencePolicy)
    assert not policy.words.reads
    plain = without_text(TEST)
    np.testing.assert_array_equal(policy.points(plain).cost_nano, blind.points(plain).cost_nano)


def test_a_policy_that_reads_texts_refuses_questions_without() -> None:
    with pytest.raises(InputError, match="these questions have no text"):
        tried((0,), "reference", text=True).points(without_text(TEST))


def test_the_best_row_is_that_of_the_least_score() -> None:
    learner = EvidenceLearner(strong="large", margin=0.03, proving=400)
    found = learner.rehearse(TRAIN, 0)
    scores = [row.figures.score(0.03, 400) for row in lesson(text=True).rows()]
    assert found.figures.score(0.03, 400) == min(scores)
    rows = {(row.models, row.ends) for row in lesson(text=True).rows()}
    near = TRAIN.correct[:, 0].mean(axis=0) >= TRAIN.correct[:, 0, 2].mean() - 0.03
    assert not near[:2].any()  # so that neither of the cheap models has the last word
    every = {(models, ends) for models in ((0,), (1,), (0, 1)) for ends in ("reference", "text")}
    assert rows == {((2,), "last")} | every


def test_the_cheapest_action_is_taken() -> None:
    stop, asking, passing = np.array([0.1, 0.3]), np.array([[0.2, 0.05]] * 2), np.full((2, 2), 0.25)
    action, value = choose(stop, asking, passing)
    assert action.tolist() == [[STOP, ASK], [ASK, ASK]]
    assert value.tolist() == [[0.1, 0.05], [0.2, 0.05]]
    assert choose(stop, None, passing)[0].tolist() == [[STOP, STOP], [PASS, PASS]]
    assert choose(stop, None, None)[0].tolist() == [[STOP], [STOP]]


def test_figures_of_a_row_are_of_policies_fitted_without_the_question() -> None:
    """What is expected of the questions of a fold is by weights fitted to those of the others."""
    known = lesson(text=False)
    after, fold = known.after((0,)), known.fold
    lost, won = after.lost, after.won
    seen, _ = known.replies.after((0,), None)
    assert np.bincount(fold).tolist() == [60] * 5
    for k in range(5):
        held = fold == k
        weights = fit_net_loss(seen[~held], lost[~held], won[~held])
        np.testing.assert_allclose(after.expected[held], net_loss(weights, seen[held]))


# regressions


def drawn(n: int, features: int, seed: int = 0) -> tuple[FloatArray, BoolArray, BoolArray]:
    rng = np.random.default_rng(seed)
    seen = rng.normal(size=(n, features)) * rng.uniform(0.1, 30, features) + rng.normal(
        size=features
    )
    seen[:, 0] = 3.0  # one that says nothing
    tilt = (seen[:, 1] - seen[:, 1].mean()) / seen[:, 1].std()
    lost = rng.random(n) < 1 / (1 + np.exp(2 - tilt))
    return seen, lost, ~lost & (rng.random(n) < 0.1)


def standardised(seen: FloatArray) -> FloatArray:
    spread = seen.std(axis=0)
    scaled = (seen - seen.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0)
    clipped: FloatArray = np.clip(scaled, -CLIP, CLIP)
    return clipped


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "features"), [(60, 3), (300, 12)])
def test_the_logistic_regressions_are_at_the_least_of_what_they_minimise(
    n: int, features: int, seed: int
) -> None:
    """Of scipy's minimiser, and of scikit-learn's with the same penalty."""
    seen, lost, won = drawn(n, features, seed)
    weights, known = fit_net_loss(seen, lost, won), standardised(seen)
    for label, found in ((lost, weights[2]), (won, weights[3])):
        share = (label.sum() + 0.5) / (n + 1)
        start = np.log(share / (1 - share))

        def loss(weight: FloatArray, label: BoolArray = label, start: float = start) -> float:
            odds = known @ weight[:-1] + weight[-1]
            fit = np.logaddexp(0, odds).sum() - odds[label].sum()
            pulled = LOGISTIC_PULL * (weight[:-1] ** 2).sum() + 1e-3 * (weight[-1] - start) ** 2
            return float(fit + pulled / 2)

        slope = [
            (loss(found + 1e-5 * step) - loss(found - 1e-5 * step)) / 2e-5
            for step in np.eye(features + 1)
        ]
        np.testing.assert_allclose(slope, 0, atol=1e-4)
        best = minimize(loss, np.append(np.zeros(features), start), tol=1e-10)
        np.testing.assert_allclose(found, best.x, atol=1e-4)
        if label.any():
            theirs = LogisticRegression(C=1 / LOGISTIC_PULL, tol=1e-10, max_iter=10_000)
            theirs.fit(known, label)
            np.testing.assert_allclose(found[:-1], theirs.coef_[0], atol=2e-3)
            np.testing.assert_allclose(found[-1], theirs.intercept_[0], atol=2e-2)


@pytest.mark.parametrize("seed", range(3))
def test_the_linear_regression_is_scikit_learns(seed: int) -> None:
    seen, lost, won = drawn(200, 6, seed)
    found, known = fit_net_loss(seen, lost, won)[4], standardised(seen)
    theirs = Ridge(alpha=LINEAR_PULL).fit(known, lost - WIN * won)
    np.testing.assert_allclose(found[:-1], theirs.coef_, atol=1e-9)
    np.testing.assert_allclose(found[-1], theirs.intercept_, atol=1e-9)


def test_what_is_lost_net_is_the_mean_of_the_two_ways_to_estimate_it() -> None:
    seen, lost, won = drawn(200, 4)
    weights, known = fit_net_loss(seen, lost, won), standardised(seen)
    for i in range(0, 200, 17):
        odds = [float(known[i] @ each[:-1] + each[-1]) for each in weights[2:]]
        chances = [1 / (1 + np.exp(-each)) for each in odds[:2]]
        by_hand = (chances[0] - WIN * chances[1] + odds[2]) / 2
        assert net_loss(weights, seen)[i] == pytest.approx(by_hand)


@pytest.mark.parametrize("alike", [True, False])
def test_where_all_or_none_are_lost_it_is_estimated_all_the_same(alike: bool) -> None:
    seen, _, _ = drawn(60, 3)
    label = np.full(60, alike)
    expected = net_loss(fit_net_loss(seen, label, np.zeros(60, dtype=bool)), seen)
    assert np.isfinite(expected).all()
    assert abs(expected - alike).max() < 0.1


def test_means_by_a_score_are_those_of_a_loop() -> None:
    """Of twelve bins, of which neighbours count half."""
    rng = np.random.default_rng(0)
    score, value = np.round(rng.normal(size=200), 1), rng.normal(size=(200, 3))
    edges, means = binned(score, value)
    assert edges.tolist() == sorted(set(np.quantile(score, np.arange(1, 12) / 12).tolist()))
    of = [sum(float(edge) < one for edge in edges) for one in score]
    assert means.shape == (len(edges) + 1, 3)
    for b in range(len(edges) + 1):
        weight = np.array([1.0 if k == b else 0.5 if abs(k - b) == 1 else 0.0 for k in of])
        np.testing.assert_allclose(means[b], weight @ value / weight.sum())


def test_a_score_that_is_always_the_same_has_one_mean() -> None:
    value = np.arange(8.0).reshape(4, 2)
    edges, means = binned(np.full(4, 0.3), value)
    assert means[np.searchsorted(edges, 0.3)].tolist() == [3.0, 4.0]
    assert np.isfinite(means).all()


# text

TEXTS = [
    "Name the capital of France",
    "Name the capital of Peru",
    "name a river in Peru",
    "Which river is the longest?",
    "Prove the theorem of Pythagoras",
    "Prove that 2 is prime",
    "Is 91 prime?",
    "Sum the primes below 20",
    "What is 2 + 2?",
    "What is 17 * 23?",
    "Who wrote Faust?",
    "Who wrote the Iliad?",
]
TARGETS = np.random.default_rng(2).random((12, 2)) + np.repeat([[0.0], [1.0], [0.3]], 4, axis=0)


def vectors(texts: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """Return unit tf-idf vectors of texts, and what each place counts for."""
    seen = np.zeros((len(texts), DIMENSIONS))
    for row, text in enumerate(texts):
        places, counts = ngram_counts(text)
        seen[row, places] = counts
    idf = np.log((1 + len(texts)) / (1 + (seen > 0).sum(axis=0))) + 1
    seen *= idf
    found: FloatArray = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    return found, idf


def left_out(strength: float) -> FloatArray:
    """Refit without each text by scikit-learn, at vectors that stay as they are."""
    seen, _ = vectors(TEXTS)
    seen = seen - seen.mean(axis=0)
    penalty = strength * np.linalg.eigvalsh(seen @ seen.T).mean()
    found: FloatArray = np.empty(TARGETS.shape)
    for i in range(len(TEXTS)):
        others = np.arange(len(TEXTS)) != i
        fit = Ridge(alpha=penalty, solver="svd").fit(seen[others], TARGETS[others])
        found[i] = fit.predict(seen[[i]])[0]
    return found


@pytest.mark.slow
def test_what_is_said_of_a_text_left_out_is_that_of_a_fit_without_it() -> None:
    """With the tf-idf, the centre and the penalty of all: of the penalty that errs least."""
    (fit,) = fit_text(TEXTS, TARGETS)
    each = {strength: left_out(strength) for strength in STRENGTHS}
    errors = {strength: ((TARGETS - said) ** 2).sum() for strength, said in each.items()}
    best = min(errors, key=lambda strength: errors[strength])
    np.testing.assert_allclose(fit.left_out, each[best], atol=1e-4)
    by_mean = (TARGETS.sum(axis=0) - TARGETS) / (len(TEXTS) - 1)
    spread = ((TARGETS - by_mean) ** 2).sum()
    assert fit.skill == pytest.approx(1 - errors[best] / spread, abs=1e-4)


def test_what_is_said_of_a_new_text_is_that_of_a_fit_to_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By places of n-grams as they were counted for all; for several outputs side by side."""
    monkeypatch.setattr(text_regression, "STRENGTHS", (3.0,))
    one, other = fit_text(TEXTS, TARGETS, TARGETS[:, ::-1] + 1)
    seen, idf = vectors(TEXTS)
    centred = seen - seen.mean(axis=0)
    penalty = 3.0 * np.linalg.eigvalsh(centred @ centred.T).mean()
    theirs = Ridge(alpha=penalty, solver="svd").fit(seen, TARGETS)
    new = ["Prove it", "", "Name a capital of the Iliad", TEXTS[0].upper() + "  "]
    asked = replace(TEST.take(np.arange(4)), question=np.array(new, dtype=object))
    row = np.zeros((4, DIMENSIONS))
    for i, text in enumerate(new):
        places, counts = ngram_counts(text)
        row[i, places] = counts * idf[places]
    row /= np.maximum(np.linalg.norm(row, axis=1, keepdims=True), 1e-9)
    expected = theirs.predict(row)
    np.testing.assert_allclose(one.regression.predict(asked), expected, atol=1e-4)
    both = one.regression.beside(other.regression).predict(asked)
    np.testing.assert_allclose(both, np.hstack([expected, expected[:, ::-1] + 1]), atol=1e-4)
    np.testing.assert_allclose(both[3], [*expected[3], *(expected[3, ::-1] + 1)], atol=1e-4)


def test_targets_that_never_differ_have_no_skill() -> None:
    (fit,) = fit_text(TEXTS, np.ones((12, 1)))
    assert fit.skill == 0.0
    np.testing.assert_allclose(fit.left_out, 1.0)

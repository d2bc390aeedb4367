"""Selective accuracy of policies that score every answer alike: sure of some, silent on others."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from farthing.bundle.folder import load
from farthing.methods.base import Dataset, Silent
from farthing.methods.lookahead.learner import LAZY, LookaheadConfig, LookaheadLearner
from farthing.methods.selective.learner import SelectiveFit, confident
from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, PointReplay, replay
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.selective import Selective
from farthing.recommendation.pipeline import calibrate, train
from farthing.recommendation.played import PlayedPolicy, ProvingQuestions
from farthing.recommendation.prove import Proof
from farthing.recommendation.prove_selective import prove_candidates
from farthing.traces.arrays import TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

ALPHA, DELTA = Fraction(1, 10), Fraction(1, 5)
CONFIG = preset("hotpotqa-llama2-7b").config
QUICK = LookaheadConfig(iterations=1, trees=8)
QUICK_LAZY = replace(LAZY, trees=8)


def drawn(n: int, seed: int) -> TraceArrays:
    traces = generate(CONFIG, n, np.random.default_rng(seed))
    return replace(traces, independent=np.ones(n, bool))  # so that single calls may be skipped


def trained(config: LookaheadConfig, questions: TraceArrays) -> Policy:
    return LookaheadLearner(config).fit(questions, ALPHA, 0, Silent()).policy


@pytest.fixture(scope="module", params=[QUICK, QUICK_LAZY], ids=["in rounds", "call by call"])
def learned(request: pytest.FixtureRequest) -> SelectiveFit:
    questions = drawn(500, 0)
    return confident(trained(request.param, questions), questions, "argmax", ALPHA)


def prove_of(asked: Selective, learned: SelectiveFit, held: TraceArrays) -> Proof:
    return prove_candidates(
        asked, [learned], PlayedPolicy(learned.policy, "allow", None), ProvingQuestions(held, held)
    )


def answers(replayed: NestedReplay | PointReplay, kappa: float) -> tuple[float, float]:
    """Return the share answered, and of those the share that is right."""
    found = replayed.act(kappa)
    answered = found.set_size > 0
    return float(answered.mean()), float(found.best_correct[answered].mean())


@pytest.mark.slow
def test_a_set_holds_at_most_one_answer(learned: SelectiveFit) -> None:
    played = replay(learned.policy, drawn(500, 1), "allow")
    for kappa in (1e-9, 0.5, 0.9):
        found = played.act(kappa)
        assert found.set_size_leaves.max() == 1
        np.testing.assert_array_equal(found.length, played.act(0.99).length)


@pytest.mark.slow
def test_the_surer_the_oftener_right(learned: SelectiveFit) -> None:
    played = replay(learned.policy, drawn(4_000, 1), "allow")
    assert isinstance(played, NestedReplay)
    sure = played.followed.leaf.max(axis=(1, 2))
    right = played.act(1e-9).best_correct
    fifths = np.array_split(np.argsort(sure), 5)
    assert (np.diff([right[part].mean() for part in fifths]) > 0).all()
    for part in fifths[1:]:
        assert right[part].mean() == pytest.approx(sure[part].mean(), abs=0.06)


@pytest.mark.slow
def test_most_questions_are_answered_where_score_1_answers_prove_nothing(
    learned: SelectiveFit,
) -> None:
    fresh, held = drawn(4_000, 2), drawn(300, 3)
    made = prove_of(Selective(1 - ALPHA, DELTA), learned, held)
    share, accuracy = answers(replay(made.policy, fresh, made.empty), made.certificate.kappa)
    assert share > 0.6
    assert accuracy > 0.9 - 0.02
    alike = replay(learned.policy.inner, fresh, "argmax")
    assert max(alike.act(kappa).best_correct.mean() for kappa in (0.0, 0.2, 0.5, 1.0)) < 0.82


@pytest.mark.slow
def test_a_bundle_says_nothing_where_it_is_unsure_and_is_calibrated_anew(
    small: Dataset, tmp_path: Path
) -> None:
    folder = tmp_path / "b"
    train(small, "stopping", ALPHA, folder)
    before = load(folder)
    made = calibrate(folder, small.traces, Selective(Fraction(2, 3), DELTA)).certificate
    assert made.promises
    bundle = load(folder)
    assert (bundle.kind, bundle.empty, bundle.kappa) == ("selective", "allow", made.kappa)
    assert bundle.features == before.features
    again = calibrate(folder, small.traces, Selective(Fraction(2, 3), DELTA)).certificate
    assert again == made
    calibrate(folder, small.traces, Coverage(1 - ALPHA))
    assert (load(folder).kind, load(folder).empty) == ("stopping", before.empty)


RUNS, FRESH, HELD = 150, 20_000, 200


@pytest.mark.slow
def test_the_promise_fails_no_oftener_than_it_may(learned: SelectiveFit) -> None:
    """At levels just short of what an operating point truly has, where proving is riskiest."""
    fresh = drawn(FRESH, 4)
    played = replay(learned.policy, fresh, "allow")
    rng = np.random.default_rng(5)
    accuracy = answers(played, float(np.quantile(learned.sure, 0.1)))[1]
    asked = Selective(Fraction(1001 - round(1000 * (1 - accuracy)), 1000), DELTA)
    failed = proved = 0
    for _ in range(RUNS):
        rows = rng.integers(0, FRESH, HELD)
        held = fresh.take(rows)
        made = prove_of(asked, learned, held).certificate
        if not made.promises:
            continue
        proved += 1
        failed += answers(played, made.kappa)[1] < 1 - asked.alpha
    assert proved > 0.5 * RUNS
    assert failed > 0.02 * RUNS  # or the level was no challenge
    limit = float(DELTA)
    assert stats.binomtest(failed, RUNS, limit, alternative="greater").pvalue > 1e-3

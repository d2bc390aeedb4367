"""The promise for another mix: kept where only round 1 has shifted, refused where more has."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from question_parts import proof_of, proved_bundle
from scipy import stats
from sure_policy import CONFIG, covariate_shifted, unsure

from farthing.bundle.base import Bundle
from farthing.bundle.folder import load
from farthing.errors import CalibrationError, InputError
from farthing.features.rounds import FeatureSet
from farthing.methods.base import Dataset, Silent
from farthing.process.batch_replay import replay
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.coverage import Coverage
from farthing.recommendation.candidates import candidates
from farthing.recommendation.fitting import fit
from farthing.recommendation.pipeline import bundle_of, calibrate, train
from farthing.recommendation.played import Questions
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.pool import cascade
from farthing_lab.generator.config import GeneratorConfig, shift_mix
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.promises.target_mix import Observed, Shown, Weighed, check_covariate_shift
from farthing_lab.promises.weighted import Shift, WeightedPromise

ALPHA = Fraction(1, 10)
LEVEL = 1 - ALPHA
HARDER = shift_mix(CONFIG, (0.2, 0.3, 0.5))
OF_MMLU = preset("mmlu-llama2-7b").config


def drawn(config: GeneratorConfig, n: int, seed: int) -> TraceArrays:
    return generate(config, n, np.random.default_rng(seed))


def effective_n(certificate: Certificate) -> float:
    assert isinstance(certificate.promise, WeightedPromise)
    return certificate.promise.effective_n


@pytest.fixture
def folder(small: Dataset, tmp_path: Path) -> Path:
    train(small, "stopping", ALPHA, tmp_path / "b")
    calibrate(tmp_path / "b", small.traces, Coverage(LEVEL))
    return tmp_path / "b"


@pytest.mark.slow
def test_a_shift_that_round_1_hides_is_refused_and_nothing_is_saved(
    small: Dataset, folder: Path
) -> None:
    hardest = drawn(shift_mix(CONFIG, (0.0, 0.0, 1.0)), 400, 1)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(InputError, match=r"more than round 1 shows.*p = 0\.001"):
        calibrate(folder, small.traces, Shift(LEVEL, hardest))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.slow
def test_a_shift_of_round_1_alone_is_certified(small: Dataset, folder: Path) -> None:
    target = covariate_shifted(drawn(CONFIG, 5_000, 2), 400, np.random.default_rng(3))
    made = calibrate(folder, small.traces, Shift(LEVEL, target)).certificate
    assert load(folder).certificate == made
    assert effective_n(made) < made.n
    assert "if that differs only in what round 1 shows" in made.sentence()


def test_what_cannot_be_compared_is_refused(small: Dataset, folder: Path) -> None:
    target = drawn(CONFIG, 50, 4)
    short = replace(target, recorded=np.where(np.arange(50) < 3, 2, 4).astype(np.int16))
    with pytest.raises(InputError, match=r"3 of 50 target questions lack rounds.*leave them out"):
        calibrate(folder, small.traces, Shift(LEVEL, short))
    one_round = drawn(replace(CONFIG, rounds=1), 100, 5)
    bundle, part = load(folder), Questions(one_round, one_round)
    bundle = structs.replace(bundle, origin=structs.replace(bundle.origin, horizon=1))
    with pytest.raises(CalibrationError, match=r"one round.*--promise coverage"):
        proof_of(Shift(LEVEL, one_round), bundle, part, part, None)


def test_a_target_is_arranged_as_the_policy_plays_it_wherever_one_comes_from() -> None:
    """A pool is a cascade to this policy: as it was recorded it has one round, which is refused."""
    rng = np.random.default_rng(15)
    like = drawn(replace(CONFIG, rounds=1), 400, 16)
    answer = rng.integers(0, 2, (400, 1, 3)).astype(np.int16)
    pool = replace(
        like,
        roles=("x", "y", "z"),
        models=("mx", "my", "mz"),
        answer=answer,
        correct=answer == 1,
        cost_nano=rng.integers(1, 9, answer.shape) * np.array([1, 10, 100]),
        signals={},
    )
    (candidate,) = candidates(Dataset("", pool), ["stopping"])
    played = cascade(pool)
    assert candidate.learner is not None
    fitted = fit(candidate.learner, played.take(np.arange(200)), ALPHA, 0, Silent())
    bundle = bundle_of(candidate, fitted, played.take(np.arange(200)))
    train_part, held = (
        Questions(pool.take(rows), played.take(rows))
        for rows in (np.arange(200), np.arange(200, 300))
    )
    asked = Shift(LEVEL, pool.take(np.arange(300, 400)))
    assert effective_n(proved_bundle(bundle, asked, train_part, held).certificate) > 50


def test_what_round_1_foretells_of_later_rounds_is_no_difference() -> None:
    """Weights that miss a shift altogether: the guess from round 1 makes up for them."""
    rng = np.random.default_rng(6)
    features = FeatureSet.fit(drawn(CONFIG, 100, 7))

    def questions(n: int, mean: float) -> Shown:
        first = rng.normal(mean, 1, (n, len(features.names)))
        return Shown(first, first + rng.normal(0, 1, first.shape))

    of_train, held, target = questions(50_000, 0), questions(200, 0), questions(200, 1)
    check_covariate_shift(
        features, of_train, Weighed(held, np.ones(200)), Weighed(target, np.ones(200))
    )
    target.later[:, 4] += 1
    with pytest.raises(CalibrationError, match=rf"later rounds: {features.names[4][:4]}"):
        check_covariate_shift(
            features, of_train, Weighed(held, np.ones(200)), Weighed(target, np.ones(200))
        )


def test_what_is_the_same_in_every_question_is_not_compared_by_its_last_bits() -> None:
    features = FeatureSet.fit(drawn(CONFIG, 100, 7))
    rng, count = np.random.default_rng(14), len(features.names)

    def weighed(n: int, last_bits: float) -> Weighed:
        first = rng.normal(size=(n, count))
        return Weighed(Shown(first, np.full((n, count), 0.7 + last_bits)), np.ones(n))

    of_train = weighed(300, 0).shown
    check_covariate_shift(features, of_train, weighed(200, 0), weighed(200, 1e-14))


def test_of_a_large_target_a_part_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    features = FeatureSet.fit(drawn(CONFIG, 100, 7))
    rng, count = np.random.default_rng(8), len(features.names)
    sizes = []

    def compare(old: Observed, new: Observed, rng: np.random.Generator) -> FloatArray:
        sizes.append((len(old.weights), len(new.weights)))
        return np.ones(count)

    def weighed(n: int) -> Weighed:
        return Weighed(Shown(rng.random((n, count)), rng.random((n, count))), np.ones(n))

    monkeypatch.setattr("farthing_lab.promises.target_mix.covariate_shift_p_values", compare)
    for n in (300, 20_000):
        check_covariate_shift(features, weighed(500).shown, weighed(200), weighed(n))
    assert sizes == [(200, 300), (200, 5_000)]


@pytest.mark.slow
def test_questions_cut_short_in_training_do_not_count_as_the_old_mix(folder: Path) -> None:
    """They are those of an unsure guide; calibration and target questions are all complete."""
    cut = drawn(CONFIG, 600, 13)
    truncated = cut.signals["uncertainty"][:, 0, 1] > 0.35
    cut = replace(cut, recorded=np.where(truncated, 2, 4).astype(np.int16))
    complete = cut.take(cut.complete)
    train_part, held = (Questions(part, part) for part in (cut, complete.take(np.arange(150))))
    target = complete.take(np.arange(150, 300))
    made = proof_of(Shift(LEVEL, target), load(folder), train_part, held, None).certificate
    assert effective_n(made) > 0.9 * made.n


RUNS, POOL = 100, 20_000


def trained(config: GeneratorConfig) -> tuple[Bundle, Questions]:
    questions = drawn(config, 600, 0)
    (candidate,) = candidates(Dataset("", questions), ["stopping"])
    assert candidate.learner is not None
    fitted = fit(candidate.learner, questions, ALPHA, 0, Silent())
    return bundle_of(candidate, fitted, questions), Questions(questions, questions)


@pytest.mark.slow
@pytest.mark.parametrize("config", [CONFIG, OF_MMLU], ids=["hotpotqa", "mmlu"])
def test_it_is_kept_and_seldom_refused_under_covariate_shift(config: GeneratorConfig) -> None:
    bundle, train_part = trained(config)
    pool, rng = drawn(config, POOL, 9), np.random.default_rng(10)
    critical, chance = replay(bundle.policy, pool, bundle.empty).critical, unsure(pool)
    refused = missed = 0
    for _ in range(RUNS):
        held, target = pool.take(rng.integers(POOL, size=200)), covariate_shifted(pool, 200, rng)
        try:
            made = proof_of(Shift(LEVEL, target), bundle, train_part, Questions(held, held), None)
        except CalibrationError:
            refused += 1
            continue
        new = rng.choice(POOL, p=chance / chance.sum())
        missed += critical[new] < made.certificate.acts_as
    assert stats.binomtest(refused, RUNS, 0.05, alternative="greater").pvalue > 1e-4
    assert stats.binomtest(missed, RUNS, 0.1, alternative="greater").pvalue > 1e-4
    assert missed > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "harder"),
    [(CONFIG, HARDER), (OF_MMLU, shift_mix(OF_MMLU, (0.1, 0.1, 0.8)))],
    ids=["hotpotqa", "mmlu"],
)
def test_questions_of_hidden_difficulty_are_refused(
    config: GeneratorConfig, harder: GeneratorConfig
) -> None:
    bundle, train_part = trained(config)
    pool, others, rng = drawn(config, POOL, 9), drawn(harder, POOL, 11), np.random.default_rng(12)
    refused = 0
    for _ in range(RUNS):
        held, target = (of.take(rng.integers(POOL, size=200)) for of in (pool, others))
        try:
            proof_of(Shift(LEVEL, target), bundle, train_part, Questions(held, held), None)
        except CalibrationError:
            refused += 1
    assert stats.binomtest(refused, RUNS, 0.97, alternative="less").pvalue > 1e-4
    assert refused > 0.9 * RUNS

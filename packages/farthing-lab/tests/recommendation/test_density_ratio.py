import numpy as np
import pytest

from farthing.errors import TooFewTracesError
from farthing.promises.kinds.split import split_threshold
from farthing_lab.promises.target_mix import fit_density_ratio
from farthing_lab.promises.weighted import Weighted, effective_size, weighted_thresholds


def test_it_recovers_a_known_ratio() -> None:
    """Normal mixes with means 0 and 1 have the ratio exp(x - 1/2); the second feature is idle."""
    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(4_000, 2)), rng.normal(size=(2_000, 2))
    target[:, 0] += 1
    ratio = fit_density_ratio(source, target)
    at = np.array([[-1.0, 0.0], [0.5, 2.0], [2.0, -2.0]])
    np.testing.assert_allclose(np.log(ratio.weights(at)), at[:, 0] - 0.5, atol=0.25)
    fresh = rng.normal(size=(20_000, 2))
    assert ratio.weights(fresh).mean() == pytest.approx(1, abs=0.1)


def test_the_same_mix_has_equal_weights_and_a_constant_feature_does_no_harm() -> None:
    rng = np.random.default_rng(1)
    features = np.column_stack([rng.normal(size=1_000), np.ones(1_000)])
    weights = fit_density_ratio(features[:600], features[600:]).weights(features)
    assert effective_size(weights) > 900


@pytest.mark.slow
def test_estimated_weights_mend_coverage() -> None:
    """The score depends on the feature; 300 calibrations with weights fitted once elsewhere."""
    rng = np.random.default_rng(2)

    def draw(n: int, mean: float) -> tuple[np.ndarray, np.ndarray]:
        x = rng.normal(mean, 1, n)
        return x[:, None], rng.random(n) / (1 + np.exp(x))

    ratio = fit_density_ratio(draw(1_000, 0)[0], draw(1_000, 1)[0])
    weighted, plain = [], []
    for _ in range(300):
        x, critical = draw(200, 0)
        new_x, new = draw(20, 1)
        weights, new_weights = ratio.weights(x), ratio.weights(new_x)
        sample = Weighted(critical, weights, float(new_weights.max()))
        weighted.append(new >= weighted_thresholds(sample, new_weights, "0.1"))
        plain.append(new >= split_threshold(critical, "0.1").kappa)
    assert np.mean(weighted) > 0.885
    assert np.mean(plain) < 0.86


def test_too_few_questions_are_refused() -> None:
    with pytest.raises(TooFewTracesError, match="at least 5 questions of each mix; got 9 and 4"):
        fit_density_ratio(np.zeros((9, 1)), np.zeros((4, 1)))

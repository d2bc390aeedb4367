"""Questions of a preset, few enough for a test."""

import numpy as np
import pytest

from farthing.methods.base import Dataset
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

PRESET = "hotpotqa-llama2-7b"


def make_dataset(n: int, seed: int = 0) -> Dataset:
    """Make questions of a preset, so few that a comparison of them takes a moment."""
    config = preset(PRESET).config
    return Dataset(PRESET, generate(config, n, np.random.default_rng(seed)), config, PRESET)


@pytest.fixture(scope="session")
def small() -> Dataset:
    """Return 300 questions of a preset."""
    return make_dataset(300)


@pytest.fixture(scope="session")
def large() -> Dataset:
    """Return 2,600 questions of a preset."""
    return make_dataset(2_600, seed=1)

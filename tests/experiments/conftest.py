"""Small generated settings, so that comparisons take a moment."""

import numpy as np
import pytest

from farthing.environments.generator import generate
from farthing.environments.presets import preset
from farthing.experiments.contenders import Setting

PRESET = "hotpotqa-llama2-7b"


def make_setting(n: int, seed: int = 0) -> Setting:
    config = preset(PRESET).config
    return Setting(PRESET, generate(config, n, np.random.default_rng(seed)), config, PRESET)


@pytest.fixture(scope="session")
def small() -> Setting:
    """Return 300 questions of a preset."""
    return make_setting(300)


@pytest.fixture(scope="session")
def large() -> Setting:
    """Return 2,600 questions of a preset."""
    return make_setting(2_600, seed=1)

"""Short trainings give the figures that they have always given.

This holds what the other tests of these learners leave open: seeds, initial weights, the order of
random numbers, step sizes. Whoever changes a learner on purpose runs this file as a program and
stores what it prints. Differences of rounding move no figure by more than a hundredth of what is
allowed here.
"""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farthing.methods.base import Learner, Silent
from farthing.process.batch_replay import followed
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.ccpo.learner import (
    PUBLISHED,
    CcpoConfig,
    CcpoLearner,
    CpoConfig,
    CpoLearner,
)

STORED = Path(__file__).with_name("golden_runs.json")
CCPO = CcpoConfig(updates=8, epsilon=0.05)
"""The paper's narrow mask is so badly conditioned that rounding shows in the fifth digit."""
PRICED = replace(CCPO, set_size_price=0.5)
PAPER = replace(PUBLISHED, updates=8, epsilon=0.05)
RUNS: dict[str, Learner] = {
    "ccpo": CcpoLearner(CCPO),
    "ccpo with a price": CcpoLearner(PRICED),
    "ccpo with a price leaf by leaf": CcpoLearner(replace(PRICED, set_size_credit="leaf")),
    "ccpo as published": CcpoLearner(PAPER),
    "ccpo as published, with a price": CcpoLearner(replace(PAPER, set_size_price=0.5)),
    "cpo": CpoLearner(CpoConfig(updates=8)),
}


def figures(learner: Learner) -> dict[str, Any]:
    """Return curves, threshold, and mean scores, [T, L + 1], on questions of the training."""
    train = generate(preset("mmlu-llama2-7b").config, 40, np.random.default_rng(0))
    fitted = learner.fit(train, Fraction(1, 5), 7, Silent())
    found: dict[str, Any] = {name: curve.tolist() for name, curve in fitted.curves.items()}
    scores = followed(fitted.policy, train).scores
    return found | {
        "threshold": fitted.kappa,
        "mean score": scores.mean(axis=0).tolist(),
        "first scores": scores[0].tolist(),
    }


@pytest.mark.parametrize("name", RUNS)
def test_the_same_figures_as_ever(name: str) -> None:
    stored, found = json.loads(STORED.read_text())[name], figures(RUNS[name])
    assert set(found) == set(stored)
    for figure, want in stored.items():
        np.testing.assert_allclose(found[figure], want, rtol=1e-5, atol=1e-6, err_msg=figure)


if __name__ == "__main__":
    everything = {name: figures(learner) for name, learner in RUNS.items()}
    STORED.write_text(json.dumps(everything, indent=1) + "\n")

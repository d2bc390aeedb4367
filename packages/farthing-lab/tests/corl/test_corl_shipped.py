"""The trained controllers that ship do on fresh questions what their page says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import fisher_exact

from farthing_lab.corl import pool as folders
from farthing_lab.corl.evaluation import graded, greedy
from farthing_lab.corl.pool import BUILT_IN, built_in
from farthing_lab.corl.rollouts import PoolSession
from farthing_lab.models.embedded import WEIGHTS

ROOT = Path(__file__).parents[4]
FRESH = 200


def measured(pool: str) -> dict[str, Any]:
    """Return the record of the controller that ships: seed 0."""
    records = json.loads((ROOT / "benchmarks/results/corl.json").read_text())
    [own] = [one for one in records if one["pool"] == pool and one["training"]["seed"] == 0]
    return dict(own)


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_pool_that_ships_has_its_own_trained_controller(name: str) -> None:
    found = folders.pool_of(None, name)
    assert found.card is not None
    assert (found.card.pool, found.card.seed, found.card.stopped) == (name, 0, "")
    assert found.pool.modes == built_in(name).modes == found.card.modes
    assert found.pool.weights() == WEIGHTS / f"corl-{name}"
    assert folders.pool_of(None, None).pool.name == "four"


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_page_says_what_was_measured(name: str) -> None:
    page = (ROOT / "docs/research/corl.md").read_text()
    for mode, one in measured(name)["modes"].items():
        shares = ("accuracy", "call_ratio", "over_budget", "reward")
        cells = [f"{1_000 * one['cost_usd']:.4f}", *(f"{one[share]:.3f}" for share in shares)]
        assert f"| {name}, seed 0 | {mode} | {' | '.join(cells)} | " in page


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_fresh_questions_are_answered_as_well_as_the_page_says(name: str) -> None:
    torch.set_num_threads(1)
    said = measured(name)
    with PoolSession.of(folders.pool_of(None, name).pool) as opened:
        questions = opened.pool.questions.sample("test", FRESH, 4_711)
        for mode in opened.modes:
            episodes = greedy(opened, questions, mode)
            cost = np.array([one.cost_nano for one in episodes])
            earned = graded(opened, questions, episodes) & (cost <= mode.budget_nano)
            right = round(said["modes"][mode.name]["reward"] * said["questions"])
            counts = np.array(
                [[earned.sum(), FRESH - earned.sum()], [right, said["questions"] - right]]
            )
            assert fisher_exact(counts).pvalue > 1e-4, mode.name  # six such tests

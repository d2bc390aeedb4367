"""Trainings on a local Ray cluster: those of this process, to the last bit."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import pytest

from farthing.errors import InputError
from farthing.methods.base import Dataset
from farthing.process.batch_replay import followed
from farthing.recommendation.base import Event, ignore
from farthing_lab.comparison.collect_on_ray import train_on_ray
from farthing_lab.comparison.compare import compare
from farthing_lab.comparison.parallel import Job, train_all
from farthing_lab.comparison.plan import Plan
from farthing_lab.methods.ccpo.learner import CcpoConfig, CcpoLearner
from farthing_lab.studies.tuning import SettingSearch, sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.extras("ray"),
    pytest.mark.filterwarnings("ignore"),  # Ray's own warnings
]
ALPHA = Fraction(1, 10)


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    ray = import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def test_a_cluster_and_this_process_train_alike(small: Dataset) -> None:
    learner = CcpoLearner(CcpoConfig(updates=10))
    jobs = [Job(f"ccpo {seed}", learner, ALPHA, seed) for seed in range(3)]
    events: list[Event] = []
    there = train_on_ray(jobs, small.traces, 2, events.append)
    here = train_all(jobs, small.traces, 1, ignore)
    for one, other in zip(here, there, strict=True):
        assert one is not None
        assert other is not None
        assert one.kappa == other.kappa
        found, expected = followed(other.policy, small.traces), followed(one.policy, small.traces)
        assert (found.scores == expected.scores).all()
    assert sorted(event.name for event in events) == [job.name for job in jobs]


def test_a_comparison_is_the_same_on_ray(small: Dataset) -> None:
    names = ("fixed-1", "stopping", "random")
    plan = Plan((ALPHA,), names, splits=3, workers=1)
    expected = compare(small, plan)
    found = compare(small, Plan((ALPHA,), names, splits=3, workers=2, engine="ray"))
    assert [row.per_split for row in found.rows] == [row.per_split for row in expected.rows]


def test_a_sweep_is_the_same_on_ray(small: Dataset, tmp_path: Path) -> None:
    search = SettingSearch("lookahead", ("trees=2,3", "iterations=1"), folds=2)
    plan = Plan((ALPHA,), splits=2, workers=1)
    expected = sweep(small, search, plan, tmp_path / "here")
    found = sweep(small, search, replace(plan, workers=2, engine="ray"), tmp_path / "there")
    assert (found.tried, found.test) == (expected.tried, expected.test)


def test_a_learner_that_cannot_learn_says_why(small: Dataset) -> None:
    mistaken = Job("mistaken", CcpoLearner(extra_features=("mood",)), ALPHA, 0)
    with pytest.raises(InputError, match=r"unknown feature 'mood'"):
        train_on_ray([mistaken], small.traces, 2, ignore)

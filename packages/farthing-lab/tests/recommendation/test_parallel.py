"""Training side by side: the same results in any number of processes, and a clean stop."""

from fractions import Fraction

import numpy as np
import pytest

from farthing.errors import InputError
from farthing.methods.base import Dataset, Fitted
from farthing.recommendation.base import Event, ignore
from farthing_lab.comparison.parallel import Job, train_all
from farthing_lab.methods.ccpo.learner import CcpoConfig, CcpoLearner, CpoConfig, CpoLearner
from farthing_lab.methods.ccpo.policy import NetworkPolicy

ALPHA = Fraction(1, 10)
ENDLESS = 20_000


def jobs(updates: int) -> list[Job]:
    return [
        Job("ccpo", CcpoLearner(CcpoConfig(updates=updates)), ALPHA, 0),
        Job("cpo", CpoLearner(CpoConfig(updates=updates)), ALPHA, 1),
    ]


def weights(fitted: Fitted | None) -> list[np.ndarray]:
    assert fitted is not None
    assert isinstance(fitted.policy, NetworkPolicy)
    return [*fitted.policy.weights, *fitted.policy.biases]


@pytest.mark.slow
def test_processes_and_this_one_train_alike(small: Dataset) -> None:
    events: list[Event] = []
    here = train_all(jobs(25), small.traces, 1, ignore)
    kept: dict[int, Fitted] = {}
    there = train_all(jobs(25), small.traces, 2, events.append, kept.__setitem__)
    assert [kept[place] for place in range(2)] == there
    for one, other in zip(here, there, strict=True):
        for ours, theirs in zip(weights(one), weights(other), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert one is not None
        assert other is not None
        assert one.kappa == other.kappa
    assert {(e.name, e.done, e.total) for e in events} == {("ccpo", 25, 25), ("cpo", 25, 25)}
    assert {e.stage for e in events} == {"train"}
    assert all({"cost", "coverage"} <= set(e.figures) for e in events)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_every_training_and_half_a_training_is_no_result(
    small: Dataset, workers: int
) -> None:
    def watch(event: Event) -> None:
        raise KeyboardInterrupt

    assert train_all(jobs(ENDLESS), small.traces, workers, watch) == [None, None]


@pytest.mark.slow
def test_what_was_trained_before_ctrl_c_is_kept(small: Dataset) -> None:
    def watch(event: Event) -> None:
        if event.name == "endless":
            raise KeyboardInterrupt

    short, endless = jobs(25)[0], Job("endless", jobs(ENDLESS)[0].learner, ALPHA, 0)
    done, lost, never = train_all([short, endless, short], small.traces, 1, watch)
    assert done is not None
    assert (lost, never) == (None, None)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_learner_that_cannot_learn_says_why_and_ends_the_others(
    small: Dataset, workers: int
) -> None:
    mistaken = CcpoLearner(extra_features=("mood",))
    both = [Job("mistaken", mistaken, ALPHA, 0), jobs(ENDLESS)[0]]
    with pytest.raises(InputError, match=r"unknown feature 'mood'.* Known: "):
        train_all(both, small.traces, workers, ignore)

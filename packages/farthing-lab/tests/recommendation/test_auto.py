"""`auto` chooses as `recommend` does, and only on training questions."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from made_up_pool import pool, questions, ungraded

import farthing as ft
from farthing.errors import InputError, TooFewTracesError
from farthing.methods.base import Dataset
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.recommendation import auto, candidates, splits
from farthing.recommendation import recommend as rooms
from farthing.traces.arrays import TraceArrays
from farthing.traces.grades.overlay import graded

ALPHA = Fraction(1, 10)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few methods take part, so that it takes a moment."""
    names = ("agreement-cascade", "always", "stopping", "fixed", "ucci")
    monkeypatch.setattr(candidates, "cards", lambda: [card(name) for name in names])


@pytest.mark.slow
def test_the_door_takes_the_method_and_says_which() -> None:
    train = questions(pool(200))
    policy = ft.fit("auto", train, seed=3)
    chosen = rooms.best_method(train.dataset, ft.Parity(), seed=3)
    assert policy.method == chosen == "ucci"
    named = ft.fit(chosen, train, seed=3)
    assert policy.bundle.questions == named.bundle.questions
    assert policy.bundle.policy.points(train.arrays).values.tolist() == (  # type: ignore[attr-defined]
        named.bundle.policy.points(train.arrays).values.tolist()  # type: ignore[attr-defined]
    )


def told(choose: Callable[[], object]) -> tuple[list[TraceArrays], list[Promise]]:
    """Return the questions and the promises that `best_method` is asked about."""
    questions_of: list[TraceArrays] = []
    promises: list[Promise] = []

    def best(dataset: Dataset, asked: Promise, **_: object) -> str:
        questions_of.append(dataset.traces)
        promises.append(asked)
        return "ucci"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auto, "best_method", best)
        choose()
    return questions_of, promises


def test_questions_outside_the_training_part_do_not_choose() -> None:
    traces = pool(400)
    split = splits.Split(seed=5)
    train = splits.split_bundle_questions(traces, split).train
    others = np.setdiff1d(np.arange(400), train)
    (given,), _ = told(lambda: auto.in_training(Dataset("", traces), ALPHA, split))
    assert given.ids.tolist() == traces.ids[train].tolist()
    assert not set(given.ids.tolist()) & set(traces.ids[others].tolist())


def aims(dataset: Dataset, alpha: Fraction = ALPHA) -> Promise:
    _, (asked,) = told(lambda: auto.choose_method(dataset, alpha))
    return asked


def test_what_is_aimed_at() -> None:
    traces = pool(50)
    rounds = ft.generate("hotpotqa-llama2-7b", 50).dataset
    assert aims(Dataset("", traces)) == ft.Parity()
    assert aims(Dataset("", graded(traces, "same as large"))) == ft.Agreement("large")
    assert aims(rounds, Fraction(1, 5)) == ft.Coverage(Fraction(4, 5))


def test_rounds_get_a_method_of_rounds() -> None:
    policy = ft.fit("auto", ft.generate("hotpotqa-llama2-7b", 400), alpha=0.2)
    assert policy.method in {"stopping", "fixed-1", "fixed-2"}
    assert policy.alpha == Fraction(1, 5)


def test_answers_of_a_reference_take_no_gold() -> None:
    logs = questions(ungraded(pool(200)))
    policy = ft.fit("auto", logs, grade="same as large")
    assert policy.bundle.origin.grade == "same as large"
    with pytest.raises(InputError, match="nobody graded"):
        ft.fit("auto", logs)


def test_too_few_or_incomplete_questions_are_refused() -> None:
    with pytest.raises(TooFewTracesError, match="there are 39 complete questions, and 40"):
        ft.fit("auto", questions(pool(39)))
    rounds = ft.generate("hotpotqa-llama2-7b", 60).dataset
    recorded = np.full(60, rounds.traces.horizon, dtype=np.int16)
    recorded[:30] = 1
    cut = replace(rounds, traces=replace(rounds.traces, recorded=recorded))
    with pytest.raises(TooFewTracesError, match="there are 30 complete questions"):
        auto.choose_method(cut, ALPHA)


@pytest.mark.slow
def test_features_go_to_those_that_read_them() -> None:
    rounds = ft.generate("hotpotqa-llama2-7b", 200)
    assert ft.fit("auto", rounds, features=["verdict"]).method == "stopping"
    with pytest.raises(InputError, match=r"can run .* \(stopping: unknown feature 'sure'"):
        ft.fit("auto", rounds, features=["sure"])

"""One role answers everything: of a pool, of rounds, live; or it was not recorded alone."""

import asyncio
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from examples import random_traces

from farthing.bundle.base import Bundle
from farthing.errors import InputError
from farthing.methods.base import Dataset, Silent
from farthing.methods.baselines.models import NOT_ALONE, AlwaysLearner, AlwaysPolicy
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing.process.batch_replay import replay
from farthing.process.play import outcome_of, play
from farthing.process.replay import ReplayOutcome
from farthing.recommendation.candidates import candidates, single_candidate, unavailable
from farthing.recommendation.pipeline import bundle_of
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.tasks.numbers import NUMBERS
from farthing.traces.arrays import TraceArrays


def alone(traces: TraceArrays) -> TraceArrays:
    return replace(traces, independent=np.ones(len(traces), dtype=bool))


POOL = alone(random_traces(3, 1, ("small", "middle", "large")))
ROUNDS = alone(random_traces(3, 3, ("base", "guide")))


def policy_of(traces: TraceArrays, role: str) -> AlwaysPolicy:
    _, learner = single_candidate(Dataset("", traces), f"always-{role}")
    policy = learner.fit(traces, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, AlwaysPolicy)
    return policy


def same(ours: ReplayOutcome, theirs: ReplayOutcome) -> None:
    for name in ReplayOutcome.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), name)


@pytest.mark.parametrize(
    ("traces", "role"), [(POOL, "small"), (POOL, "large"), (ROUNDS, "base"), (ROUNDS, "guide")]
)
def test_it_is_the_first_call_of_its_role_and_nothing_else(traces: TraceArrays, role: str) -> None:
    policy, place = policy_of(traces, role), traces.roles.index(role)
    found = replay(policy, traces).act(1.0)
    np.testing.assert_array_equal(found.cost_nano, traces.cost_nano[:, 0, place])
    np.testing.assert_array_equal(found.best_correct, traces.correct[:, 0, place])
    assert found.set_size.max() == 1
    same(found, outcome_of(play(policy, traces, 1.0, "allow")))


@pytest.mark.parametrize("traces", [POOL, ROUNDS])
def test_calls_that_saw_others_say_nothing_of_a_model_alone(traces: TraceArrays) -> None:
    seen = traces.independent.copy()
    seen[0] = False
    dataset = Dataset("", replace(traces, independent=seen))
    names = [f"always-{role}" for role in traces.roles]
    assert set(names) <= set(unavailable(dataset)[NOT_ALONE])
    found = candidates(dataset, ["always"])
    assert [(one.name, one.learner, one.note) for one in found] == [
        (name, None, NOT_ALONE) for name in names
    ]
    with pytest.raises(InputError, match=f"cannot run: {NOT_ALONE}"):
        single_candidate(dataset, names[0])


def test_every_model_of_a_pool_takes_part_by_itself() -> None:
    found = [one for one in candidates(Dataset("", POOL)) if one.method.name == "always"]
    assert [one.label for one in found] == ["Always small", "Always middle", "Always large"]


def test_without_a_name_it_is_the_model_that_is_right_most_often_in_training() -> None:
    right = POOL.correct.copy()
    right[:, 0, 1] = True
    train = replace(POOL, correct=right)
    policy = AlwaysLearner().fit(train, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(policy, AlwaysPolicy)
    assert policy.role == 1


@pytest.mark.parametrize(("traces", "role"), [(POOL, "middle"), (ROUNDS, "guide")])
def test_it_answers_live_with_one_call(traces: TraceArrays, role: str) -> None:
    dataset = Dataset("", traces)
    candidate, learner = single_candidate(dataset, f"always-{role}")
    fitted = learner.fit(traces, Fraction(1, 10), 0, Silent())
    bundle: Bundle = bundle_of(candidate, fitted, traces, dataset)
    cost = TokenPrice((Rates(Decimal(0), Decimal(0)),), request=Decimal("0.002"))

    def model(name: str) -> ScriptedModel:
        said = "Answer: 7" if name == role else "Answer: 8"
        return ScriptedModel(lambda prompt: said, name=name, price=cost)

    models = {name: model(name) for name in traces.roles}
    serving = PolicyRunner.with_models(bundle, models, NUMBERS)
    answer = asyncio.run(serving.answer(Question("q", "What is 4 + 3?")))
    assert (answer.best, answer.cost_usd, answer.ended_by) == ("7", 0.002, "policy")
    assert [call.role for call in answer.trace.calls] == [role]

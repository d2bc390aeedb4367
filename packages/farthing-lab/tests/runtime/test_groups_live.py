"""A policy that decides by a question's group decides live as a replay of the question does."""

from fractions import Fraction

import numpy as np
import pytest
from playback import ask, bundle_of, playback, question_of

from farthing.methods.base import Silent
from farthing.process.batch_replay import replay
from farthing.runtime.answer import Answer
from farthing.runtime.protocol import Independent
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.system import origin_of
from farthing_lab.methods.routers.v0 import V0Learner

MODELS = ("small", "large")


def traces(n: int) -> list[Trace]:
    """Return questions whose words say nothing: `small` is right on history, and `large` on all."""
    rng, found = np.random.default_rng(0), []
    for at in range(n):
        group = ("history", "algebra")[rng.integers(2)]
        right = {"small": group == "history", "large": True}
        calls = [
            Call(
                round=1,
                role=name,
                model=name,
                answer="yes" if right[name] and rng.random() < 0.95 else "no",
                cost_usd=0.001 if name == "large" else 0.0001,
            )
            for name in MODELS
        ]
        found.append(
            Trace(
                id=f"q{at}",
                question="Is it so?",
                gold=["yes"],
                calls=calls,
                group=group,
                independent=True,
            )
        )
    return found


ASKED = traces(200)
DATA = assemble(ASKED)
POLICY = V0Learner().fit(DATA, Fraction(1, 10), 0, Silent()).policy


@pytest.mark.slow
def test_the_group_decides_live_as_in_a_replay() -> None:
    parameters = POLICY.parameters
    assert parameters is not None
    split = 0
    for kappa in parameters.tolist()[::8]:
        done = replay(POLICY, DATA).act(kappa)
        split += len(set(done.cost_nano.tolist())) > 1
        for at in range(20):
            found = live(kappa, question_of(ASKED[at]), ASKED[at].group)
            assert found.cost_nano == done.cost_nano[at]
    assert split > 2  # there is something to tell apart


def test_a_group_that_it_did_not_learn_of_is_said() -> None:
    kappa = 0.5
    assert not any("group" in why for why in live(kappa, question_of(ASKED[0]), "algebra").caveats)
    for group, name in ((None, "none"), ("music", "music")):
        (why,) = [w for w in live(kappa, question_of(ASKED[0]), group).caveats if "group" in w]
        assert why == f"the policy decides by a question's group, and did not learn of {name}"


def live(kappa: float, question: Question, group: str | None) -> Answer:
    """Ask one question, of a group."""
    plan = Independent(playback(ASKED, MODELS), 1, TEXT)
    bundle = bundle_of(POLICY, origin_of(DATA, "f"), kappa)
    asked = Question(question.id, question.text, question.gold, group)
    return ask(PolicyRunner(bundle, plan, TEXT), asked)

"""A promise about the answers that are given: withheld live exactly where a replay withholds."""

import asyncio
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest
from chat_server import Endpoint
from withheld_answers import withheld_as_replayed

from farthing.bundle.base import Bundle
from farthing.errors import AuthenticationError, InputError
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import ScriptedModel
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.budget import BudgetPromise
from farthing.promises.kinds.escalated import EscalatedPromise
from farthing.promises.kinds.parity import ParityPromise
from farthing.promises.kinds.selective import SelectivePromise
from farthing.promises.kinds.split import SplitPromise
from farthing.promises.levels import Margin
from farthing.promises.payload import Payload
from farthing.runtime.agents.base import BaseAgent
from farthing.runtime.answer import Answer
from farthing.runtime.protocol import Independent
from farthing.runtime.runner import PolicyRunner
from farthing.tasks.base import Question
from farthing.tasks.text import TEXT
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.system import Origin

TENTH = Fraction(1, 10)


@pytest.mark.slow
def test_answers_are_withheld_where_a_replay_withholds_them(
    endpoint: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    withheld_as_replayed("lazy", endpoint, capsys)


# ---- Without a server

ORIGIN = Origin(
    roles=("base", "guide"),
    models=("small", "large"),
    mean_cost_nano=(0, 0),
    horizon=1,
    fingerprint="f",
)


class Unsure(FixedDepthPolicy):
    """Scores every answer 0.4."""

    def scores(self, traces: TraceArrays) -> FloatArray:
        return np.broadcast_to([0.4, 0.4, 0.0], (len(traces), 1, 3)).copy()


def unsure(kappa: float) -> Bundle:
    sure = SelectivePromise(alpha=TENTH, delta=TENTH, point=0, points=1, answered=50)
    certificate = Certificate(promise=sure, kappa=kappa, n=99)
    return Bundle(
        policy=Unsure(1),
        kind="any",
        origin=ORIGIN,
        kappa=kappa,
        empty="allow",
        certificate=certificate,
        features=None,
        farthing_version="0",
    )


def model(name: str, said: str | Exception) -> ScriptedModel:
    return ScriptedModel(lambda _: said, name=name)  # type: ignore[arg-type,return-value]


def live(bundle: Bundle, last: BaseAgent | None, budget_nano: int | None = None) -> Answer:
    base = BaseAgent(model("small", "Answer: Porto"))
    guide = BaseAgent(model("large", "Answer: Lisbon"), role="guide")
    plan = Independent((base, guide), 1, TEXT)
    runner = PolicyRunner(bundle, plan, TEXT, escalation=last)
    question = Question("q", "What is the capital of Portugal?")
    return asyncio.run(runner.answer(question, budget_nano=budget_nano))


def test_the_threshold_alone_decides_whether_an_answer_is_given() -> None:
    last = BaseAgent(model("huge", "Answer: Lisbon"), role="escalation")
    sure = live(unsure(0.3), last)
    assert (sure.best, sure.abstained, sure.guaranteed, sure.escalated) == (
        "Lisbon",
        False,
        True,
        None,
    )
    assert sure.promise.startswith("With confidence 0.9 in the draw of 99 questions, an answer")
    withheld = live(unsure(0.5), None)
    assert (withheld.best, withheld.abstained, withheld.guaranteed) == (None, True, False)
    passed_on = live(unsure(0.5), last)
    assert (passed_on.best, passed_on.answers, passed_on.guaranteed) == ("Lisbon", (), False)
    assert [c.role for c in passed_on.trace.calls] == ["base", "guide"]


def passing_on(reference: str) -> Bundle:
    both = EscalatedPromise(
        alpha=TENTH,
        epsilon=TENTH,
        delta=TENTH,
        reference=reference,
        point=0,
        points=1,
        answered=50,
    )
    certificate = Certificate(promise=both, kappa=0.5, n=99)
    return msgspec.structs.replace(unsure(0.5), certificate=certificate)


def test_a_bundle_passes_on_to_whom_it_promises_and_asks_nobody_twice() -> None:
    found = live(passing_on("guide"), None)
    assert (found.best, found.answers, found.abstained, found.guaranteed) == (
        "Lisbon",
        (),
        True,
        True,
    )
    assert found.escalated is found.trace.calls[1]  # which had been asked already
    assert found.promise.startswith("The policy is not sure enough of any answer, so large")
    assert "the accuracy of the whole is above guide's minus 0.1" in found.promise
    by_model = live(passing_on("small"), None)
    assert (by_model.best, by_model.guaranteed) == ("Porto", True)
    with pytest.raises(InputError, match="name nobody else"):
        live(passing_on("guide"), BaseAgent(model("huge", "Answer: Lisbon"), role="escalation"))
    with pytest.raises(InputError, match="passes questions on to huge, which is not among"):
        live(passing_on("huge"), None)


def test_a_key_that_is_wrong_for_the_last_model_alone_is_a_failure() -> None:
    last = BaseAgent(model("huge", AuthenticationError("the key is wrong")), role="escalation")
    found = live(unsure(0.5), last)
    assert (found.best, found.ended_by, found.escalated) == (None, "failure", None)
    assert "the key is wrong" in found.promise


def test_a_budget_that_does_not_reach_the_last_model_is_said() -> None:
    price = TokenPrice((Rates(Decimal(0), Decimal(0)),), Decimal("0.01"))
    dear = ScriptedModel(lambda _: "Answer: Lisbon", name="huge", price=price)
    found = live(unsure(0.5), BaseAgent(dear, role="escalation"), budget_nano=9_999_999)
    assert (found.best, found.ended_by, found.escalated, dear.calls) == (None, "policy", None, [])
    assert found.promise.startswith("No answer is given: the policy is not sure enough of any.")
    assert "Besides, the question could not be passed on (" in found.promise


def test_nobody_is_named_where_nothing_is_ever_withheld() -> None:
    certificate = Certificate(promise=SplitPromise(alpha=TENTH, k=9), kappa=0.5, n=99)
    bundle = msgspec.structs.replace(unsure(0.5), certificate=certificate)
    with pytest.raises(InputError, match="the bundle never abstains"):
        live(bundle, BaseAgent(model("huge", ""), role="escalation"))


@pytest.mark.parametrize(
    ("promise", "says"),
    [
        (
            ParityPromise(
                epsilon=Margin("0.02"), delta=TENTH, point=0, points=4, reference="guide"
            ),
            "accuracy of the policy",
        ),
        (
            BudgetPromise(budget_nano=10**6, most_nano=10**7, delta=TENTH, point=0, points=4),
            "the policy costs less",
        ),
    ],
)
def test_other_promises_of_a_menu_are_said_with_the_answer(promise: Payload, says: str) -> None:
    certificate = Certificate(promise=promise, kappa=0.3, n=99)
    bundle = msgspec.structs.replace(unsure(0.3), certificate=certificate)
    found = live(bundle, None)
    assert (found.best, found.guaranteed, found.abstained) == ("Lisbon", True, False)
    assert says in found.promise

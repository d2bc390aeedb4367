"""Frozen experts: asked once, paid each time, and right about what a call can cost."""

from decimal import Decimal

import pytest

from farthing.errors import BadRequestError
from farthing.models.base import Prompt, Usage
from farthing.models.prices import Rates, TokenPrice
from farthing.models.scripted import Reply as Written
from farthing.models.scripted import ScriptedModel
from farthing_lab.corl.rollouts import ExpertReply, FrozenExperts

DOLLAR_A_TOKEN = TokenPrice((Rates(Decimal(1_000_000), Decimal(2_000_000)),))
NANO = 10**9


def model(name: str = "small") -> ScriptedModel:
    def reply(prompt: Prompt) -> Written:
        text = prompt.messages[-1].content
        return BadRequestError("cannot") if "bad" in text else f"{name} says {text.upper()}"

    return ScriptedModel(reply, name=name, price=DOLLAR_A_TOKEN)


def test_replies_go_to_whom_they_belong_and_each_question_is_asked_once() -> None:
    small, large = model("small"), model("large")
    with FrozenExperts({"small": small, "large": large}, max_tokens=9) as experts:
        calls = [("small", "a"), ("large", "a"), ("small", "b"), ("small", "a")]
        texts = ["small says A", "large says A", "small says B", "small says A"]
        assert [reply.text for reply in experts.ask(calls)] == texts
        assert [reply.text for reply in experts.ask(calls[::-1])] == texts[::-1]
        assert experts.ask([]) == []
    assert sorted(p.messages[-1].content for p in small.calls) == ["a", "b"]
    assert [p.messages[-1].content for p in large.calls] == ["a"]
    assert {p.max_tokens for p in small.calls} == {9}
    assert {p.temperature for p in small.calls} == {0.0}


def test_a_known_reply_costs_what_it_cost() -> None:
    with FrozenExperts({"small": model()}) as experts:
        first, second = experts.ask([("small", "a")]), experts.ask([("small", "a")])
    assert first == second == [ExpertReply("small says A", (1 + 2 * 3) * NANO, Usage(1, 3))]


def test_the_controller_is_shown_what_it_is_to_see() -> None:
    with FrozenExperts({"small": model()}, shown=lambda text: text[-1]) as experts:
        assert experts.ask([("small", "a")])[0].text == "A"


def test_a_failed_call_costs_the_most_that_it_can_and_stops_no_other() -> None:
    with FrozenExperts({"small": model()}) as experts:
        failed, fine = experts.ask([("small", "bad"), ("small", "a")])
        assert (failed.text, failed.error) == ("", "cannot")
        assert failed.cost_nano == experts.largest_nano("small", "bad")
        assert (fine.text, fine.error) == ("small says A", "")


def test_no_call_costs_more_than_is_said_before() -> None:
    with FrozenExperts({"small": model()}, max_tokens=3) as experts:
        assert experts.ask([("small", "a")])[0].cost_nano <= experts.largest_nano("small", "a")


def test_the_models_and_the_loop_are_closed() -> None:
    closed = []

    class Closing(ScriptedModel):
        async def aclose(self) -> None:
            closed.append(self.name)

    with FrozenExperts({"small": Closing({}, name="small")}) as experts:
        assert closed == []
    assert closed == ["small"]
    with pytest.raises(RuntimeError, match="closed"):
        experts._runner.get_loop()


def test_a_name_that_there_is_not_is_an_error() -> None:
    with FrozenExperts({"small": model()}) as experts, pytest.raises(KeyError):
        experts.largest_nano("large", "a")

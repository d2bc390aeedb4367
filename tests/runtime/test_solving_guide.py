"""A guide that solves agrees where its own answer is the base's."""

import asyncio
import math

import pytest

from farthing.models.base import Completion, Prompt, TokenLogprob, Usage
from farthing.models.scripted import ScriptedModel
from farthing.runtime.base import Turn
from farthing.runtime.meter import Meter
from farthing.runtime.solving_guide import SolvingGuide, probability
from farthing.tasks.arithmetic import ARITHMETIC
from farthing.tasks.base import Question
from farthing.traces.base import Call

QUESTION = Question("q", "b=a+5;a=4;b?", ("9",))


def solves(*tokens: tuple[str, float]) -> SolvingGuide:
    """Return a guide whose model writes these tokens with these probabilities."""

    def reply(prompt: Prompt) -> Completion:
        assert prompt.temperature == 0
        assert QUESTION.text in prompt.messages[-1].content
        logprobs = tuple(TokenLogprob(text, math.log(p)) for text, p in tokens)
        text = "".join(one.token for one in logprobs)
        return Completion(text, "large", "stop", Usage(5, len(tokens)), 7, 0.1, logprobs)

    return SolvingGuide(ScriptedModel(reply, name="large"), ARITHMETIC)


def judged(guide: SolvingGuide, answer: str | None) -> Call:
    base = Call(round=1, role="base", answer=answer, text="so it is")
    turn = Turn(QUESTION, 1, (base,))
    client = Meter().client(QUESTION, 1, guide)
    return asyncio.run(guide.act(turn, client))


@pytest.mark.parametrize(
    ("answer", "verdict"), [("9", True), ("<answer>9</answer>", True), ("4", False), (None, None)]
)
def test_its_verdict_is_that_answers_are_the_same(answer: str | None, verdict: bool | None) -> None:
    guide = solves(("ba;", 0.9), ("<answer>", 1.0), ("9", 0.5), ("</answer>", 1.0))
    call = judged(guide, answer)
    assert (call.answer, call.verdict) == ("9", verdict)
    assert call.uncertainty == pytest.approx(math.log(2))


def test_without_an_answer_it_judges_nothing() -> None:
    call = judged(solves(("ba;", 0.9)), "9")
    assert (call.answer, call.verdict, call.uncertainty) == (None, None, None)


def test_the_last_place_of_a_part_counts() -> None:
    tokens = [TokenLogprob(t, math.log(p)) for t, p in (("9", 0.1), ("=", 1.0), ("9", 0.8))]
    assert probability(tokens, "9=9", "9") == pytest.approx(0.8)
    assert probability(tokens, "9=8", "9") is None
    assert probability([], "9", "9") is None
    assert probability(tokens, "9=9", "") is None

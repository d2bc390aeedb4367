"""What a controller is held against is chosen on other questions than those it is judged on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from controller_pool import calls, scripted_pool

from farthing.errors import ModelConnectionError
from farthing.models.base import Prompt
from farthing.promises.kinds.parity import Parity
from farthing.tasks.base import Question
from farthing.traces.base import SplitName
from farthing_lab.corl.certificate import certify
from farthing_lab.corl.evaluation import evaluate, greedy
from farthing_lab.corl.pool import ListedQuestions
from farthing_lab.corl.rollouts import PoolSession
from farthing_lab.tasks.arithmetic import solve

CHAINS = tuple(
    text
    for text in (f"b=a+{k};a={m};b?" for k in range(1, 7) for m in range(1, 7))
    if solve(text) not in ("4", "5")
)
"""What `large` solves, and where neither 4 nor 5 is right."""


def five(_: Prompt) -> str:
    return "<answer>5</answer>"


def listed(part: SplitName, accepted: str = "5") -> ListedQuestions:
    """Return questions of each part; in one of them 5 is accepted, in the others what is right.

    So `small`, which says 5, is right there alone, and `large` everywhere else.
    """
    found = []
    parts: tuple[SplitName, ...] = ("train", "calibrate", "test")
    for place, name in enumerate(parts):
        for at, text in enumerate(CHAINS[place::3]):
            gold = accepted if name == part else solve(text)
            found.append(Question(f"{name}-{at}", text, (gold,), group="affine-2", split=name))
    return ListedQuestions(tuple(found))


@pytest.fixture
def opened() -> Iterator[PoolSession]:
    """Open a pool whose controller calls `large`, and answers 4 whatever it replies."""
    with scripted_pool(calls("large"), five) as one:
        yield one


def asking(opened: PoolSession, questions: ListedQuestions) -> PoolSession:
    return replace(opened, pool=replace(opened.pool, questions=questions))


def test_the_best_plan_and_the_best_expert_are_those_of_other_questions(
    opened: PoolSession,
) -> None:
    """On the questions to calibrate `small` is always right and cheaper, on those to test never.

    So the best plan and the best expert are `small`, and both come to nothing. In hindsight it is
    `large`, which is right every time.
    """
    *_, high = evaluate(asking(opened, listed("calibrate")), 6).modes
    [cell] = high.cells
    assert (cell.best_plan, cell.best_plan_reward) == ("small", 0.0)
    assert (high.best_plan.reward, high.best_plan.accuracy) == (0.0, 0.0)
    assert (high.best_single.expert, high.best_single.accuracy) == ("small", 0.0)
    assert high.best_single.accuracy_difference.value == 0.0
    assert high.ahead["best plan"].value == 0.0
    assert high.hindsight.reward == 1.0
    assert high.baselines["large"].reward == high.baselines["threshold"].reward == 1.0


def test_what_is_right_on_the_judged_questions_moves_no_choice(opened: PoolSession) -> None:
    """Whatever is accepted there, plans and expert stay what they are elsewhere: `large`."""
    *_, high = evaluate(asking(opened, listed("test")), 6).modes
    [cell] = high.cells
    assert (cell.best_plan, high.best_single.expert) == ("large", "large")
    assert high.best_single.accuracy == 0.0
    assert high.hindsight.accuracy == 1.0


@pytest.mark.slow
def test_the_reference_of_a_certificate_is_the_strongest_expert_in_training(
    opened: PoolSession,
) -> None:
    for part, reference in (("train", "small"), ("calibrate", "large"), ("test", "large")):
        found = certify(asking(opened, listed(part)), Parity(), 10)  # type: ignore[arg-type]
        assert found.recorded.reference == reference


def test_an_answer_beyond_the_budget_of_its_mode_earns_nothing(opened: PoolSession) -> None:
    """It answers 4, which is right, after a call of `large`: too dear in the cheapest mode."""
    low, *_, high = evaluate(asking(opened, listed("test", "4")), 6).modes
    assert [one.accuracy.value for one in (low, high)] == [1.0, 1.0]
    assert [one.over_budget.value for one in (low, high)] == [1.0, 0.0]
    assert [one.reward.value for one in (low, high)] == [0.0, 1.0]
    assert low.best_plan.over_budget == 0.0
    for one in (low, high):  # by itself it says 4 as well, which costs less
        assert one.hindsight.reward == 1.0
        assert one.ahead["alone"].value == one.reward.value - 1.0


def test_figures_are_sums_over_the_questions_that_they_are_about() -> None:
    """Of each cell its own, and of the best expert its own calls; costs differ by length.

    The controller calls `small`, which fails where a text has a 7, and answers 4.
    """

    def at_times(prompt: Prompt) -> Any:
        fails = "7" in prompt.messages[-1].content
        return ModelConnectionError("nobody is there") if fails else "<answer>5</answer>"

    texts = {
        "affine-1": [f"a={k};a?" for k in range(3, 9)],
        "affine-2": [f"b=a+{k};a={m};b?" for k, m in ((2, 2), (1, 7), (3, 1), (1, 3), (1, 2))],
    }
    parts: tuple[SplitName, ...] = ("calibrate", "test")
    questions = [
        Question(f"{part}-{text}", text, (solve(text),), group=group, split=part)
        for group, some in texts.items()
        for place, part in enumerate(parts)
        for text in some[place::2]
    ]
    with scripted_pool(calls("small"), at_times) as one:
        opened = asking(one, ListedQuestions(tuple(questions)))
        asked = opened.pool.questions.sample("test", 99, 0)
        found = evaluate(opened, 99)
        episodes = greedy(opened, asked, found.modes[0].mode)
        [*large] = opened.experts.ask([("large", question.text) for question in asked])
    assert found.questions == 5
    low = found.modes[0]
    cost = np.array([episode.cost_nano for episode in episodes])
    right = np.array([question.gold == ("4",) for question in asked])
    assert 0 < right.sum() < 5
    failed = sum("7" in question.text for question in asked)
    assert (low.failed, low.malformed, low.refused) == (failed, 0.0, 0)
    assert failed > 0
    assert low.dearest_usd == pytest.approx(cost.max() / 1e9)
    assert low.best_single.expert == "large"
    mean = np.mean([reply.cost_nano for reply in large])
    assert low.best_single.cost_usd == pytest.approx(mean / 1e9)
    for cell in low.cells:
        mine = np.array([question.group == cell.name for question in asked])
        assert cell.questions == mine.sum()
        assert cell.accuracy == right[mine].mean()
        assert cell.cost_usd == pytest.approx(cost[mine].mean() / 1e9)
    assert len({cell.cost_usd for cell in low.cells}) == 2

"""CORL from end to end, with tiny networks: pools, best plans, training, live answers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import Endpoint
from controller_pool import answers, calls, dollars, scripted_pool, write_pool

from farthing.errors import ConfigError, InputError, ModelConnectionError, UnpricedModelError
from farthing.models.base import Prompt
from farthing.models.config import ModelsConfig
from farthing.models.scripted import ScriptedModel
from farthing.tasks.base import Question
from farthing_lab.corl.certificate import experts_of
from farthing_lab.corl.evaluation import (
    alone,
    choosing,
    chosen_modes,
    evaluate,
    every_plan,
    greedy,
    recorded,
)
from farthing_lab.corl.live import ask
from farthing_lab.corl.plan import best, outcome
from farthing_lab.corl.pool import BUILT_IN, ListedQuestions, built_in, find, read_pool
from farthing_lab.corl.rollouts import PoolSession, chat_layout
from farthing_lab.tasks.arithmetic import solve

CENT = 10**7


@pytest.fixture(scope="module")
def pool_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pool(tmp_path_factory.mktemp("corl"))


Scripted = Callable[..., PoolSession]


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """Open pools with a small expert that says 4, and a large one that is right."""
    with ExitStack() as opened:
        yield lambda *given: opened.enter_context(scripted_pool(*given))


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_pool_that_ships_has_its_experts_modes_and_questions(name: str) -> None:
    pool = built_in(name)
    kinds, hops = BUILT_IN[name][1:]
    asked = pool.questions.sample("test", 200, seed=0)
    assert {one.group for one in asked} == {f"{kind}-{hop}" for kind in kinds for hop in hops}
    assert {one.split for one in asked} == {"test"}
    assert len({one.text for one in asked}) == 200
    budgets = [mode.budget_nano for mode in pool.modes]
    assert budgets == sorted(set(budgets))
    assert all("per million tokens" in expert.price for expert in pool.rules.experts)


def test_a_plan_costs_what_a_controller_pays_who_follows_it(scripted: Scripted) -> None:
    noting = calls("small", "=", ";", "!")  # its notes are paid for, too
    for network, asked in (
        *((answers(), ()), (noting, (0,))),
        *((calls("small"), (0,)), (calls("large"), (1,))),
    ):
        opened = scripted(network)
        questions = opened.pool.questions.sample("test", 12, seed=1)
        played = every_plan(opened, recorded(opened, questions))
        assert max(len(one.asked) for one in played.plans) == opened.rules.most_turns - 1 == 2
        plan = next(at for at, one in enumerate(played.plans) if one.asked == asked)
        episodes = greedy(opened, questions, opened.modes[0])
        assert [one.cost_nano for one in episodes] == played.cost_nano[plan].tolist()
        assert {tuple(call.expert for call in one.calls) for one in episodes} == {
            tuple(("small", "large")[k] for k in asked)
        }


def test_by_itself_a_controller_calls_nobody(scripted: Scripted) -> None:
    """One that would call `large` every time; what it then writes costs less than a call."""
    opened = scripted(calls("large"))
    questions = opened.pool.questions.sample("test", 8, seed=4)
    assert not any(one.calls for one in alone(opened, questions))
    found = recorded(opened, questions)
    assert (found.own_nano < found.cost_nano[1]).all()


def test_a_call_that_failed_gave_no_answer_and_is_not_right(scripted: Scripted) -> None:
    """It is charged at the most that it can cost, and no plan that takes its answer is right."""

    def at_times(prompt: Prompt) -> Any:
        fails = "7" in prompt.messages[-1].content
        return ModelConnectionError("nobody is there") if fails else "<answer>4</answer>"

    opened = scripted(answers(), at_times)
    questions = opened.pool.questions.sample("test", 30, seed=5)
    [calls_made] = experts_of(opened, questions, ["small"])
    failed = np.array(["7" in one.text for one in questions])
    assert 0 < failed.sum() < 30
    assert [one.answer is None for one in calls_made] == failed.tolist()
    assert [one.error is not None for one in calls_made] == failed.tolist()
    found = recorded(opened, questions)
    assert found.answer is not None
    assert ((found.answer[0] == -1) == failed).all()
    assert not found.right[0][failed].any()
    most = [opened.experts.largest_nano("small", one.text) for one in questions]
    assert found.cost_nano[0][failed].tolist() == np.array(most)[failed].tolist()


def test_what_experts_give_is_what_they_were_asked(scripted: Scripted) -> None:
    opened = scripted(answers())
    questions = opened.pool.questions.sample("test", 60, seed=2)
    found = recorded(opened, questions)
    is_four = [float(one.gold == ("4",)) for one in questions]
    assert found.right[1].tolist() == [1.0] * 60
    assert found.right[0].tolist() == found.own_right.tolist() == is_four
    assert found.answer is not None
    same = (found.answer[0] == found.answer[1]).tolist()
    assert same == [bool(yes) for yes in is_four]


@pytest.mark.slow
def test_an_evaluation_counts_each_question_once_in_each_mode(scripted: Scripted) -> None:
    opened = scripted(calls("large"))
    steps: list[tuple[int, int]] = []
    found = evaluate(opened, 60, seed=2, watch=lambda *step: steps.append(step))
    fours = np.mean([one.gold == ("4",) for one in opened.pool.questions.sample("test", 60, 2)])
    assert [one.mode.name for one in found.modes] == ["low", "medium", "high"]
    assert steps[-1] == (5, 5)
    for one in found.modes:
        assert one.accuracy.value == pytest.approx(fours)
        assert one.call_ratio.value == 1
        assert one.baselines["large"].accuracy == one.best_single.accuracy == 1
        assert one.best_single.expert == "large"
        assert one.best_single.accuracy_difference.value == pytest.approx(fours - 1)
        assert (
            one.best_single.accuracy_difference.high < 0 < one.best_single.cost_difference_usd.low
        )
        assert one.hindsight.reward >= one.best_plan.reward
        others = {**one.baselines, "best plan": one.best_plan}
        assert one.ahead.keys() == others.keys()
        for name, other in others.items():  # on the same questions, each of which counts alike
            assert one.ahead[name].value == pytest.approx(one.reward.value - other.reward)
        assert sum(cell.questions for cell in one.cells) == 60
        for figure in (one.accuracy, one.cost_usd, one.call_ratio, one.over_budget, one.reward):
            assert figure.low <= figure.value <= figure.high


def test_plans_are_chosen_on_questions_of_the_kinds_that_are_asked(scripted: Scripted) -> None:
    """Only chains of two are asked; on those of one, the controller alone would be right."""
    opened = scripted(answers())
    lines = {
        "affine-1": ("a=5;a?", "4", "calibrate", 30),  # no gold that `large` would give
        "affine-2": ("b=a+1;a=2;b?", "3", "calibrate", 10),
        "tested": ("b=a+3;a=2;b?", "5", "test", 3),
    }
    listed = [
        Question(f"{name}-{k}", text, (gold,), group=name.replace("tested", "affine-2"), split=part)
        for name, (text, gold, part, n) in lines.items()
        for k in range(n)
    ]
    pool = replace(opened.pool, questions=ListedQuestions(tuple(listed)))
    *_, high = evaluate(replace(opened, pool=pool), 3).modes
    [cell] = high.cells
    assert (cell.name, cell.best_plan, high.best_single.expert) == ("affine-2", "large", "large")


@pytest.mark.slow
@pytest.mark.parametrize(("hard_nano", "refused", "ended"), [(20_000, 6, 0), (10, 0, 6), (0, 0, 6)])
def test_no_episode_exceeds_a_hard_budget(
    scripted: Scripted, hard_nano: int, refused: int, ended: int
) -> None:
    opened = scripted(calls("large"))
    one, *_ = evaluate(opened, 6, hard_nano=hard_nano).modes
    assert one.call_ratio.value == 0
    assert one.refused == refused
    assert one.dearest_usd <= hard_nano / 1e9
    questions = opened.pool.questions.sample("test", 6, 0)
    ends = [e.ended_by for e in greedy(opened, questions, opened.modes[0], hard_nano)]
    assert ends.count("budget") == ended


def test_an_expert_that_never_replies_ends_an_evaluation(scripted: Scripted) -> None:
    def failing(_: Prompt) -> ModelConnectionError:
        return ModelConnectionError("nobody is there")

    opened = scripted(answers(), failing)
    with pytest.raises(InputError, match="'small' failed on every question: nobody is there"):
        evaluate(opened, 6)


def test_budgets_are_chosen_so_that_the_best_plans_cost_more_from_mode_to_mode(
    scripted: Scripted,
) -> None:
    opened = scripted(answers())
    opened = replace(opened, pool=replace(opened.pool, modes=opened.modes[:2]))
    modes = chosen_modes(opened, opened.pool.questions.sample("calibrate", 60, 0))
    assert [mode.name for mode in modes] == ["low", "medium"]
    assert modes[0].budget_nano < modes[1].budget_nano


def test_a_pool_from_a_file_has_its_modes_in_order_and_its_experts(pool_file: Path) -> None:
    pool = read_pool(pool_file)
    assert [(mode.name, mode.budget_nano) for mode in pool.modes] == [
        ("low", 20_000),
        ("high", 500_000),
    ]
    assert pool.experts == ("small", "large")
    assert pool.controller == "writer"
    assert pool.weights().name == "controller"
    assert {one.split for one in pool.questions.sample("test", 99, 0)} == {"test"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('task = "arithmetic"', "", "pool: lacks the field `task`"),
        ("low = 0.00002", "low = -1", "modes.NAME: must be a number, at least 0"),
        ("[modes]", "[mode]", "mode: there is no such section"),
        ('controller = "writer"', 'controller = "nobody"', "neither a section of models nor"),
        ("most_turns = 3", "most_turns = 0", "pool.most_turns: must be a whole number"),
    ],
)
def test_a_file_that_is_no_pool_is_refused(
    pool_file: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    file = tmp_path / "pool.toml"
    file.write_text(pool_file.read_text().replace(old, new))
    with pytest.raises(ConfigError) as error:
        read_pool(file)
    assert said in str(error.value)


def test_a_folder_of_weights_may_be_the_controller_if_it_has_a_price(
    pool_file: Path, tmp_path: Path
) -> None:
    text = pool_file.read_text().replace('"writer"', f'"{pool_file.parent / "controller"}"')
    file = tmp_path / "pool.toml"
    file.write_text(text.replace("[models.writer]", "[models.other]"))
    with pytest.raises(UnpricedModelError, match="'controller' costs"):
        read_pool(file).price("controller")
    prices = '\n[prices]\n"controller" = { input_per_million = 0.1, output_per_million = 0.4 }\n'
    file.write_text(file.read_text() + prices)
    pool = read_pool(file)
    assert pool.experts == ("other", "small", "large")
    assert pool.weights() == pool_file.parent / "controller"


def test_an_unknown_pool_and_absent_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give two, four, or a TOML file"):
        find("three")
    with pytest.raises(InputError, match="holds no weights of a controller"):
        built_in("two").speaking(tmp_path).weights()


@pytest.mark.slow
def test_a_live_answer_costs_what_its_steps_cost(pool_file: Path) -> None:
    found = ask(read_pool(pool_file), "b=a+1;a=2;b?", "high", budget_nano=CENT)
    spent = sum(round((call.cost_usd or 0) * 1e9) for call in found.done.trace.calls)
    assert spent == found.done.episode.cost_nano <= CENT
    assert found.dearest.expert == "large"
    assert found.dearest.measured
    partly = ask(read_pool(pool_file), "b=a+1;a=2;b?", "high", known_usd={"small": 1.0})
    assert partly.dearest.expert == "large", "what is known of one alone says nothing"
    with pytest.raises(InputError, match="the question is empty"):
        ask(read_pool(pool_file), " ", "high")
    with pytest.raises(InputError, match="does not end with a letter and a question mark"):
        ask(built_in("two"), "what is 2 + 2", "high")
    with pytest.raises(InputError, match="unknown mode 'middle'"):
        ask(read_pool(pool_file), "a=2;a?", "middle")


def test_models_are_closed_whatever_comes_of_a_live_question(
    pool_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []

    class Closing(ScriptedModel):
        async def aclose(self) -> None:
            closed.append(self.name)

    prices = {"writer": None, "small": dollars("1"), "large": dollars("1")}
    models = {name: Closing({}, name=name, price=usd) for name, usd in prices.items()}
    monkeypatch.setattr(ModelsConfig, "open", lambda _: models)
    with pytest.raises(UnpricedModelError, match="'writer' costs"):
        ask(read_pool(pool_file), "a=2;a?", "low")
    assert closed == list(prices)


HTTP = """
provider = "openai-compatible"
model = "remote"
url = "{url}"
retries = {{ tries = 1 }}

[prices]
"remote" = {{ input_per_million = 1.0, output_per_million = 4.0 }}
"""


def test_paths_of_a_pool_are_relative_to_its_file(
    pool_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = pool_file.parent / "beside.toml"
    text = pool_file.read_text()
    beside.write_text(text.replace(f"{pool_file.parent}/questions.jsonl", "questions.jsonl"))
    monkeypatch.chdir(tmp_path)
    assert beside.read_text() != text
    assert read_pool(beside).questions == read_pool(pool_file).questions


@pytest.mark.slow
def test_experts_may_be_behind_http(pool_file: Path, tmp_path: Path) -> None:
    with Endpoint(lambda said: f"<answer>{solve(said[-1]['content'])}</answer>") as endpoint:
        before, _ = pool_file.read_text().split("[models.small]")
        file = tmp_path / "pool.toml"
        file.write_text(f"{before}[models.far]{HTTP.format(url=endpoint.url)}")
        pool = read_pool(file)
        with PoolSession.of(pool) as opened:
            found = evaluate(opened, 6)
        assert found.modes[0].baselines["far"].accuracy == 1
        assert found.modes[0].best_single.cost_usd > 0
        assert max(endpoint.answered.values()) == 1  # nobody is asked anything twice
        asked = sum(endpoint.answered.values())
        live = ask(pool, "b=a+1;a=2;b?", "high", known_usd={"far": 0.5})
        called = sum(endpoint.answered.values()) - asked
    assert called == len(live.done.episode.calls)
    assert live.dearest.measured == bool(called)
    if not called:
        assert live.dearest.cost_nano == CENT * 50


class Chat:
    """A tokenizer of letters, with a chat template."""

    chat_template: str | None = "chat"

    def __init__(self, write: Callable[[Sequence[dict[str, str]]], str]) -> None:
        self.apply_chat_template = lambda said, **_: write(said)


def test_what_a_chat_template_writes_between_turns_is_read_off_it() -> None:
    def write(said: Sequence[dict[str, str]]) -> str:
        turns = "".join(f"<{one['role'][0]}>{one['content']}</s>" for one in said)
        return f"{turns}<a>"

    layout = chat_layout(Chat(write), Path("weights"))
    assert (layout.before_reply, layout.after_reply) == ("</s><u>", "</s><a>")
    with pytest.raises(InputError, match="changes earlier turns"):
        chat_layout(Chat(lambda said: said[-1]["content"]), Path("weights"))


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_the_best_plans_of_a_pool_that_ships_cost_and_call_more_from_mode_to_mode(
    name: str,
) -> None:
    with PoolSession.of(built_in(name)) as opened:
        questions = opened.pool.questions.sample("calibrate", 30 * len(BUILT_IN[name][2]), 7)
        played = every_plan(opened, recorded(opened, questions))
    found = [
        outcome(played, best(played, mode.budget_nano), mode.budget_nano) for mode in opened.modes
    ]
    for figures in (
        [one.cost_nano for one in found],
        [one.call_ratio for one in found],
        [one.reward for one in found],
    ):
        assert figures == sorted(set(figures))
    assert max(one.over_budget for one in found) <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT_IN)
def test_the_modes_of_a_pool_that_ships_are_those_that_are_chosen(name: str) -> None:
    _, kinds, hops = BUILT_IN[name]
    with PoolSession.of(built_in(name)) as opened:
        questions = choosing(opened, len(set(kinds)) * len(hops))
        chosen = [mode.budget_nano for mode in chosen_modes(opened, questions)]
        # A cost between which a budget lies may differ where rounding makes another token likelier.
        assert chosen == pytest.approx([mode.budget_nano for mode in opened.modes], rel=0.01)

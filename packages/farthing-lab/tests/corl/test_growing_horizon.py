"""A controller's horizon: which turns it compares, that it is used, and that a kill keeps it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_controllers import HIGH, LOW, RULES, Perfect, voice

from farthing.errors import InputError
from farthing.tasks.base import Question
from farthing.traces.arrays import FloatArray
from farthing_lab.corl.base import MadeCall
from farthing_lab.corl.episode import Episode, Rules
from farthing_lab.corl.learner import (
    TrainingSchedule,
    TrainingTask,
    Update,
    _beside_best,
    _decided,
    learn,
)
from farthing_lab.lm.make import Size, network
from farthing_lab.lm.masked_ppo import MaskedTrainer, Settings
from farthing_lab.rl.episode_rewards import Outcomes, RecentCosts
from farthing_lab.tasks.arithmetic import ARITHMETIC, Recipe, draw_of

AUTOMATIC = Settings(advantage="gae", minibatch=4, actor_rate=1e-3, discount="automatic")
COURSE = TrainingSchedule(updates=5, prompts=4, rollouts=3)


def episode(*calls: tuple[int, str]) -> Episode:
    made = tuple(MadeCall(turn, expert, "", "", 0) for turn, expert in calls)
    return Episode(Rules(()), "", LOW, (), (), made, ended_by="answer", turns=3)


def test_a_turn_is_whom_it_calls() -> None:
    found = _decided([episode(), episode((1, "large"), (3, "small")), episode((2, "small"))], RULES)
    assert found.tolist() == [[0, 0, 0], [2, 0, 1], [0, 1, 0]]


def test_the_demonstration_is_the_groups_cheapest_success() -> None:
    """Right and paid for, cheapest; a group without one is left out."""
    right = np.array([1, 1, 1, 0, 1, 1, 1], dtype=bool)
    reward = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0])
    cost = np.array([9, 4, 6, 1, 1, 7, 8])
    none = np.zeros(7, dtype=np.int64)
    outcomes = Outcomes(right, cost, none, right, RecentCosts())
    turns = np.arange(7)[:, None] * np.array([1, 10])
    done, shown, of = _beside_best(turns, reward, outcomes, [0, 0, 0, 1, 1, 2, 2])
    assert done[:, 0].tolist() == [0, 1, 2, 5, 6]
    assert shown.tolist() == [[1, 10], [5, 50]]
    assert of.tolist() == [0, 0, 0, 1, 1]
    nothing = _beside_best(turns, np.zeros(7), outcomes, [0, 0, 0, 1, 1, 2, 2])
    assert [len(part) for part in nothing] == [0, 0, 0]


def question(generator: np.random.Generator) -> Question:
    return next(draw_of("train", [Recipe("sums", 1, 0)], generator)).question()


def half(outcomes: Outcomes) -> FloatArray:
    """Reward every other episode, and call it right: so that there are successes."""
    outcomes.correct[::2] = True
    return np.where(outcomes.correct & (np.arange(len(outcomes.correct)) % 2 == 0), 1.0, 0.0)


def lesson(net: Any) -> TrainingTask:
    experts = Perfect({"small": 700, "large": 30_000})
    return TrainingTask(voice(net), RULES, (LOW, HIGH), experts, ARITHMETIC, question, reward=half)


def turns_of(settings: Settings, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[float]:
    """Train, and return the discount of a turn in each update."""
    seen: list[float] = []
    update = MaskedTrainer.update

    def noted(trainer: Any, batch: Any, factor: float, generator: Any, turn: float) -> Any:
        seen.append(turn)
        return update(trainer, batch, factor, generator, turn)

    with monkeypatch.context() as patched:
        patched.setattr(MaskedTrainer, "update", noted)
        learn(lesson(network(Size(1, 16), 1)), COURSE, settings, seed=3, **more)
    return seen


@pytest.mark.slow
def test_turns_are_discounted_until_all_are_mastered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network without skill calls nobody, nor do its demonstrations: all agree."""
    assert turns_of(replace(AUTOMATIC, discount="fixed"), monkeypatch) == [1.0] * 5
    assert turns_of(AUTOMATIC, monkeypatch) == pytest.approx([0.2**0.5, 1.0, 1.0, 1.0, 1.0])


@pytest.mark.slow
def test_a_kill_does_not_forget_what_is_mastered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(update: Update) -> None:
        if update.update == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("farthing_lab.corl.learner.EVERY_S", 0.0)
    with pytest.raises(KeyboardInterrupt):
        turns_of(AUTOMATIC, monkeypatch, folder=tmp_path / "kept", watch=kill)
    rest = turns_of(AUTOMATIC, monkeypatch, folder=tmp_path / "kept")
    assert rest == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("advantage", ["group", "shrunk", "given"])
def test_advantages_without_a_value_model_have_no_discount(advantage: Any) -> None:
    with pytest.raises(InputError, match="with an automatic one take gae"):
        Settings(advantage=advantage, discount="automatic")

"""CORL: teach a controller when to call whom, by reinforcement (arXiv 2511.02755).

The mode is drawn anew for each prompt, so that one controller serves all of them. Only the
controller learns; experts are frozen, and what they reply is masked.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from farthing.money import usd_from_nano
from farthing.tasks.base import Question, Task
from farthing.traces.arrays import FloatArray, IntArray
from farthing_lab.corl.allocations import PromptBatch, RolloutAllocation, Successes, allocated, even
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import Episode, Rules
from farthing_lab.corl.rollouts import Experts, Sampler, Voice, rollouts, trajectory
from farthing_lab.lm.masked_ppo import (
    EpisodeBatch,
    Learners,
    MaskedTrainer,
    Settings,
    UpdateFigures,
)
from farthing_lab.lm.supervised import TrainingState
from farthing_lab.rl.collapse import CallPrices, CollapseLimits, Curves, collapse
from farthing_lab.rl.discount import Horizon
from farthing_lab.rl.episode_rewards import HARD_GATE, Outcomes, RecentCosts, Reward
from farthing_lab.rl.schedules import rex

EVERY_S = 30.0
"""Seconds of training that a kill may cost."""


@dataclass(frozen=True)
class TrainingSchedule:
    """How long a controller learns."""

    updates: int = 80
    prompts: int = 64
    """Questions of an update."""
    rollouts: int = 8
    """Episodes a question, in the mean over an update's; 2 or more for GRPO."""
    warm: float = 0.05
    """Share of the updates in which the learning rates rise."""


Draw = Callable[[np.random.Generator], Question]


@dataclass(frozen=True)
class TrainingTask:
    """What is taught, to whom, by whom."""

    voice: Voice
    rules: Rules
    modes: tuple[Mode, ...]
    experts: Experts
    task: Task
    draw: Draw
    """Gives a question with its gold answers."""
    reward: Reward = HARD_GATE
    sampler: Sampler = rollouts
    allocation: RolloutAllocation = even
    prices: CallPrices | None = None
    """So that a message about a collapse can say whether budgets and prices meet."""


@dataclass(frozen=True)
class Update:
    """What one update saw and did."""

    update: int
    reward: float
    accuracy: float
    call_ratio: float
    """Share of the episodes that called an expert."""
    calls: float
    """Calls an episode."""
    cost_usd: float
    over_budget: float
    """Share of the episodes that cost more than their mode's budget."""
    malformed: float
    """Share of the episodes with a turn that could not be read."""
    kl: float
    entropy: float
    clip_fraction: float
    update_kl: float
    policy_loss: float
    value_loss: float
    seconds: float
    """Since the training began."""
    tokens: int
    """That the controller wrote, in all updates so far."""
    by_mode: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """[call ratio, mean reward] of each mode."""


@dataclass
class TrainingLog:
    """How a training went."""

    updates: list[Update] = field(default_factory=list)
    stopped: str = ""
    """Why it stopped early; empty where it did not."""


Watch = Callable[[Update], None]


def learn(
    lesson: TrainingTask,
    course: TrainingSchedule,
    settings: Settings,
    *,
    seed: int,
    folder: Path | None = None,
    watch: Watch = lambda _: None,
) -> TrainingLog:
    """Train the task's controller in place; go on after a kill as if there was none.

    The seed draws questions, modes, samples and their order. `folder` keeps what is needed to go
    on; None keeps nothing.
    """
    training = _CorlTraining(lesson, course, settings, np.random.default_rng(seed))
    if folder is not None and folder.exists():
        training.restore(folder)
    saved = time.monotonic()
    while len(training.log.updates) < course.updates and not training.log.stopped:
        training.update()
        watch(training.log.updates[-1])
        ended = len(training.log.updates) >= course.updates or training.log.stopped
        if folder is not None and (ended or time.monotonic() - saved > EVERY_S):
            training.keep(folder)
            saved = time.monotonic()
    return training.log


class _CorlTraining:
    def __init__(
        self,
        lesson: TrainingTask,
        course: TrainingSchedule,
        settings: Settings,
        generator: np.random.Generator,
    ) -> None:
        self.lesson, self.course, self.generator = lesson, course, generator
        voice = lesson.voice
        learners = Learners.of(voice.network, settings, voice.hooks)
        self.trainer = MaskedTrainer(learners, settings)
        self.state = TrainingState(self.trainer.modules, self.trainer.optimizers, generator)
        self.log, self.recent, self.successes = TrainingLog(), RecentCosts(), Successes()
        self.horizon = Horizon.of(settings.discount, lesson.rules.most_turns)
        self.began = time.monotonic()

    def update(self) -> None:
        asked, groups = self._questions()
        voice = self.lesson.voice
        voice.network.eval()
        pairs = [(question.text, mode) for question, mode in asked]
        episodes = self.lesson.sampler(
            voice, self.lesson.rules, pairs, self.lesson.experts, self.generator
        )
        graded = zip(asked, episodes, strict=True)
        outcomes = Outcomes(
            correct=np.array([self.lesson.task.grade(e.answer, q.gold) for (q, _), e in graded]),
            cost_nano=np.array([one.cost_nano for one in episodes]),
            budget_nano=np.array([one.mode.budget_nano for one in episodes]),
            well_formed=np.array([not one.malformed for one in episodes]),
            recent=self.recent,
        )
        reward = self.lesson.reward(outcomes)
        self.recent = self.recent.after(outcomes.cost_nano)
        cells = [_cell(*one) for one in asked]
        prior = self.successes.value(cells)
        self.successes = self.successes.after(cells, reward, [_written([e]) for e in episodes])
        turns = _decided(episodes, self.lesson.rules)
        self.horizon = self.horizon.after(*_beside_best(turns, reward, outcomes, groups))
        parts = []
        for one in (trajectory(one, 0.0, voice.encode, voice.layout) for one in episodes):
            if (known := one.response_logprobs) is None:
                what = "log-probabilities of what the controller wrote"
                raise ValueError(f"the sampler gave no {what}")
            parts.append((one.prompt_ids, one.response_ids, one.response_mask, known))
        batch = EpisodeBatch.of(parts, reward, groups, prior)
        voice.network.train()
        factor = rex(len(self.log.updates) / self.course.updates, self.course.warm)
        figures = self.trainer.update(
            batch, max(factor, _LEAST), self.generator, self.horizon.gamma
        )
        voice.network.eval()
        self._note(episodes, outcomes, reward, figures)

    def keep(self, folder: Path) -> None:
        said = {
            "updates": [asdict(one) for one in self.log.updates],
            "stopped": self.log.stopped,
            "recent": self.recent.cost_nano.tolist(),
            "successes": self.successes.counts,
            "sums": self.successes.sums,
            "mastered": self.horizon.mastered,
        }
        self.state.keep(folder, said)

    def restore(self, folder: Path) -> None:
        said = self.state.restore(folder)
        self.log = TrainingLog([Update(**one) for one in said["updates"]], said["stopped"])
        self.recent = RecentCosts(np.array(said["recent"], dtype=np.int64))
        self.successes = Successes(said["successes"], said.get("sums", {}))
        mastered = said.get("mastered", self.horizon.mastered)
        self.horizon = replace(self.horizon, mastered=mastered)
        self.began -= self.log.updates[-1].seconds if self.log.updates else 0.0

    def _questions(self) -> tuple[list[tuple[Question, Mode]], list[int]]:
        course, generator, modes = self.course, self.generator, self.lesson.modes
        questions = [self.lesson.draw(generator) for _ in range(course.prompts)]
        drawn = [modes[int(generator.integers(len(modes)))] for _ in questions]
        cells = list(map(_cell, questions, drawn))
        known = PromptBatch(questions, self.successes.chance(cells), self.successes.length(cells))
        each = allocated(self.lesson.allocation, known, course.prompts * course.rollouts)
        groups = np.repeat(np.arange(course.prompts), each).tolist()
        return [(questions[at], drawn[at]) for at in groups], groups

    def _note(
        self,
        episodes: Sequence[Episode],
        found: Outcomes,
        reward: FloatArray,
        figures: UpdateFigures,
    ) -> None:
        called = np.array([bool(one.calls) for one in episodes])
        modes = np.array([one.mode.name for one in episodes])
        before = self.log.updates[-1].tokens if self.log.updates else 0
        self.log.updates.append(
            Update(
                update=len(self.log.updates) + 1,
                reward=float(reward.mean()),
                accuracy=float(found.correct.mean()),
                call_ratio=float(called.mean()),
                calls=float(np.mean([len(one.calls) for one in episodes])),
                cost_usd=usd_from_nano(found.cost_nano.mean()),
                over_budget=float((found.cost_nano > found.budget_nano).mean()),
                malformed=float((~found.well_formed).mean()),
                **asdict(figures),
                seconds=round(time.monotonic() - self.began, 3),
                tokens=before + _written(episodes),
                by_mode={
                    str(one): [
                        float(called[modes == one].mean()),
                        float(reward[modes == one].mean()),
                    ]
                    for one in np.unique(modes)
                },
            )
        )
        names = ("reward", "call_ratio", "entropy", "kl")
        curves = {n: np.array([getattr(one, n) for one in self.log.updates]) for n in names}
        ended = collapse(Curves(**curves), self.lesson.prices, CollapseLimits())
        self.log.stopped = ended.message if ended else ""


_LEAST = 1e-3
"""Least share of the learning rates; at 0 an update would be for nothing."""


def _cell(question: Question, mode: Mode) -> str:
    return f"{mode.name}:{question.group or ''}"


def _decided(episodes: Sequence[Episode], rules: Rules) -> IntArray:
    """Return whom each episode called in each of its turns, [n, most turns]; 0 for nobody."""
    found = np.zeros((len(episodes), rules.most_turns), dtype=np.int64)
    for row, one in enumerate(episodes):
        for call in one.calls:
            found[row, call.turn - 1] = 1 + rules.names.index(call.expert)
    return found


def _beside_best(
    turns: IntArray, reward: FloatArray, outcomes: Outcomes, groups: Sequence[int]
) -> tuple[IntArray, IntArray, IntArray]:
    """Return turns of episodes, of their groups' cheapest successes, and which is whose.

    A group without a success, which is right and earns something, is left out.
    """
    group = np.array(groups)
    won = outcomes.correct & (reward > 0)
    order = np.lexsort((outcomes.cost_nano, ~won, group))
    numbers, first = np.unique(group[order], return_index=True)
    best = order[first]
    shown = best[won[best]]
    known = np.isin(group, group[shown])
    return turns[known], turns[shown], np.searchsorted(numbers[won[best]], group[known])


def _written(episodes: Sequence[Episode]) -> int:
    return sum(len(s.ids) for one in episodes for s in one.segments)

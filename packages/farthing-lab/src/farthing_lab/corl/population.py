"""What a pool's controller and experts give on questions: each is asked once, and no plan guesses.

From it come the budgets of the modes, the best fixed plans, and the simple ways to choose.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.tasks.base import Question
from farthing.traces.arrays import BoolArray, IntArray
from farthing_lab.corl.base import Episode, Mode
from farthing_lab.corl.hooks import no_calls
from farthing_lab.corl.optimum import modes_between
from farthing_lab.corl.plan import PlayedPlans, Population, plans, play
from farthing_lab.corl.rollouts import ExpertReply, RolloutSampling, rollouts
from farthing_lab.corl.session import PoolSession
from farthing_lab.corl.syntax import prompt, replied

ALL = "all"
"""The one cell, where questions have no groups."""


def recorded(
    opened: PoolSession, questions: Sequence[Question], cells: Sequence[str] | None = None
) -> Population:
    """Return what each expert, and the controller alone, gives on questions with gold answers.

    The cells are their groups in order, each with a question; None: those that occur, sorted.
    """
    names = opened.rules.names
    calls = [(name, question.text) for name in names for question in questions]
    replies = opened.experts.ask(calls)
    by_expert = [replies[k * len(questions) :][: len(questions)] for k in range(len(names))]
    check_replies(names, by_expert)
    own = alone(opened, questions)
    calling, passing = _writing(opened, questions, by_expert)
    return Population(
        names=names,
        right=np.array([_right(opened, questions, some) for some in by_expert], dtype=float),
        cost_nano=np.array([[reply.cost_nano for reply in some] for some in by_expert]),
        own_right=graded(opened, questions, own).astype(float),
        own_nano=np.array([episode.cost_nano for episode in own]),
        calling_nano=calling,
        passing_nano=passing,
        cell=cell_of(questions, cells_of(questions) if cells is None else cells),
        weight=np.ones(len(questions)),
        answer=_answers(opened, by_expert),
    )


def every_plan(opened: PoolSession, population: Population) -> PlayedPlans:
    """Return what every plan gives that the controller has turns for."""
    most = min(opened.rules.most_turns - 1, len(population.names), MOST_CALLS)
    return play(population, plans(len(population.names), most))


MOST_CALLS = 3
"""Longer plans are not tried: with four experts there would be hundreds."""


def chosen_modes(opened: PoolSession, questions: Sequence[Question]) -> tuple[Mode, ...]:
    """Return budgets under which the best plans' cost and call ratio rise from mode to mode."""
    played = every_plan(opened, recorded(opened, questions))
    return modes_between(played, [mode.name for mode in opened.modes])


def check_replies(names: Sequence[str], by_expert: Sequence[Sequence[ExpertReply]]) -> None:
    """Refuse an expert that failed on every question."""
    for name, replies in zip(names, by_expert, strict=True):
        if all(reply.error for reply in replies):
            raise InputError(f"the expert '{name}' failed on every question: {replies[0].error}")


def alone(opened: PoolSession, questions: Sequence[Question]) -> list[Episode]:
    """Return the controller's episodes where it may not call, under the cheapest mode.

    What a call begins with, and an answer does not, is forbidden. Where that is several tokens, a
    call may be spelt in other ones: the prompt then names nobody, and nobody can be called.
    """
    voice, rules, mode = opened.voice, opened.rules, opened.modes[0]
    if len(voice.encode("<call>")) > 1:
        rules = replace(rules, experts=())
    voice = replace(voice, hooks=(*voice.hooks, no_calls(voice)))
    asked = [(question.text, mode) for question in questions]
    generator = np.random.default_rng(0)  # of nothing: the likeliest tokens are taken
    sampling = RolloutSampling(temperature=0.0)
    return rollouts(voice, rules, asked, opened.experts, generator, sampling)


def graded(
    opened: PoolSession, questions: Sequence[Question], episodes: Sequence[Episode]
) -> BoolArray:
    """Return whether each episode's answer is right, [N]."""
    pairs = zip(questions, episodes, strict=True)
    return np.array([opened.task.grade(episode.answer, one.gold) for one, episode in pairs])


def cells_of(questions: Sequence[Question]) -> tuple[str, ...]:
    """Return the groups that occur, sorted."""
    return tuple(sorted({question.group or ALL for question in questions}))


def cell_of(questions: Sequence[Question], cells: Sequence[str]) -> IntArray:
    """Return each question's place among the cells, [N]; 0 where there is one cell alone."""
    if len(cells) == 1:
        return np.zeros(len(questions), dtype=np.int64)
    places = {name: at for at, name in enumerate(cells)}
    return np.array([places[question.group or ALL] for question in questions])


def _right(
    opened: PoolSession, questions: Sequence[Question], replies: Sequence[ExpertReply]
) -> list[bool]:
    pairs = zip(questions, replies, strict=True)
    return [not r.error and opened.task.grade(r.text, one.gold) for one, r in pairs]


def _answers(opened: PoolSession, by_expert: Sequence[Sequence[ExpertReply]]) -> IntArray:
    """Return which answer each expert gave, [K, N]; equal answers have equal numbers."""
    numbers: dict[str, int] = {}

    def number(reply: ExpertReply) -> int:
        text = "" if reply.error else opened.task.normalise(reply.text)
        return numbers.setdefault(text, len(numbers)) if text else -1

    return np.array([[number(reply) for reply in some] for some in by_expert])


def _writing(
    opened: PoolSession, questions: Sequence[Question], by_expert: Sequence[Sequence[ExpertReply]]
) -> tuple[IntArray, IntArray]:
    """Return what a call, and an answer after one, cost the controller's writing, [N] each.

    It writes what it mostly writes before a call, the call, and then the answer; of the experts'
    replies the middle one counts.
    """
    voice, rules = opened.voice, opened.rules
    called = max(len(voice.encode(f"<call>{name}</call>")) for name in rules.names)
    called += _thought(opened, questions)
    between = len(voice.encode(voice.layout.before_reply + voice.layout.after_reply))
    calling, passing = [], []
    for question, *replies in zip(questions, *by_expert, strict=True):
        asked = prompt(rules.style, opened.modes[-1], rules.experts, question.text, rules.prompts)
        begun = len(voice.encode(voice.layout.begin(asked)))
        texts = [opened.task.normalise(reply.text) for reply in replies]
        said = _middle([len(voice.encode(replied(reply.text))) for reply in replies])
        wrote = _middle([len(voice.encode(f"<answer>{text}</answer>")) for text in texts])
        read = begun + called + between + said
        calling.append(voice.price.cost_nano(Usage(begun, called), 0.0))
        passing.append(voice.price.cost_nano(Usage(read, wrote), 0.0))
    return np.array(calling), np.array(passing)


def _thought(opened: PoolSession, questions: Sequence[Question]) -> int:
    """Return how many tokens the controller mostly writes before a call; 0 where it never calls."""
    asked = [(question.text, opened.modes[0]) for question in questions]
    generator = np.random.default_rng(0)
    episodes = rollouts(opened.voice, opened.rules, asked, opened.experts, generator)
    before = [
        len(opened.voice.encode(one.segments[0].text.partition("<call>")[0]))
        for one in episodes
        if one.calls
    ]
    return _middle(before) if before else 0


def _middle(lengths: Sequence[int]) -> int:
    return sorted(lengths)[(len(lengths) - 1) // 2]

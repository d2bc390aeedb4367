"""What a controller comes to in each mode, on questions that nobody learned from.

Beside it, on the same questions: the best fixed plan, which was chosen for each cell on other
questions; the best that any plan of the kind comes to in hindsight; and simple ways to choose. The
controller takes the likeliest tokens.

The controller alone and each expert are asked each question once, and no plan guesses. From that
come the budgets of the modes, the best fixed plans, and the simple ways to choose.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from farthing.errors import InputError
from farthing.models.base import Usage
from farthing.money import usd_from_nano
from farthing.promises.figures import accuracy_difference, clopper_pearson
from farthing.recommendation.significance import t_quantile
from farthing.tasks.base import Question
from farthing.traces.arrays import BoolArray, FloatArray, IntArray
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import Episode, prompt, replied
from farthing_lab.corl.hooks import no_calls
from farthing_lab.corl.plan import (
    PlanOutcome,
    PlayedPlans,
    Population,
    best,
    modes_between,
    outcome,
    plans,
    play,
    rewards,
    simple_ways,
)
from farthing_lab.corl.rollouts import ExpertReply, PoolSession, RolloutSampling, rollouts

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
    gold = [question.gold for question in questions]
    right = [
        [not r.error and opened.task.grade(r.text, one) for r, one in zip(some, gold, strict=True)]
        for some in by_expert
    ]
    numbers: dict[str, int] = {}  # equal answers have equal ones

    def number(reply: ExpertReply) -> int:
        text = "" if reply.error else opened.task.normalise(reply.text)
        return numbers.setdefault(text, len(numbers)) if text else -1

    own = alone(opened, questions)
    calling, passing = _writing(opened, questions, by_expert)
    return Population(
        names=names,
        right=np.array(right, dtype=float),
        cost_nano=np.array([[reply.cost_nano for reply in some] for some in by_expert]),
        own_right=graded(opened, questions, own).astype(float),
        own_nano=np.array([episode.cost_nano for episode in own]),
        calling_nano=calling,
        passing_nano=passing,
        cell=cell_of(questions, cells_of(questions) if cells is None else cells),
        weight=np.ones(len(questions)),
        answer=np.array([[number(reply) for reply in some] for some in by_expert]),
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


EACH = 40
"""Other questions for each cell, in the mean, on which plans are chosen."""
CHOOSING_SEED = 1_000_003
"""Of those questions, so that every evaluation holds a controller to the same plans."""


@dataclass(frozen=True)
class IntervalEstimate:
    """A mean, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class BestSingle:
    """The best single expert, chosen on other questions, beside the controller; paired."""

    expert: str
    accuracy: float
    cost_usd: float
    """Of the expert's own calls."""
    accuracy_difference: IntervalEstimate
    """The controller's less the expert's."""
    cost_difference_usd: IntervalEstimate


@dataclass(frozen=True)
class CellEvaluation:
    """A kind of question, such as chains of one length."""

    name: str
    questions: int
    accuracy: float
    call_ratio: float
    cost_usd: float
    best_plan: str
    best_plan_reward: float


@dataclass(frozen=True)
class ModeEvaluation:
    """What came of all questions in one mode."""

    mode: Mode
    accuracy: IntervalEstimate
    cost_usd: IntervalEstimate
    """A question, the controller's writing included."""
    call_ratio: IntervalEstimate
    """Share of the questions on which an expert was called."""
    over_budget: IntervalEstimate
    """Share of the questions that cost more than B(mode)."""
    reward: IntervalEstimate
    """Under the hard gate."""
    malformed: float
    """Share of the questions with a turn that could not be read."""
    refused: int
    """Calls that the hard budget did not allow."""
    failed: int
    """Calls that failed; each is charged at the most that it can cost."""
    dearest_usd: float
    """What the dearest question cost."""
    best_plan: PlanOutcome
    """The best plan of each cell, chosen on other questions."""
    hindsight: PlanOutcome
    """The best plan of each cell on these very questions: too good to be asked for."""
    baselines: Mapping[str, PlanOutcome]
    best_single: BestSingle
    ahead: Mapping[str, IntervalEstimate]
    """The controller's reward less that of the best plan, and of each baseline; paired."""
    cells: tuple[CellEvaluation, ...]


@dataclass(frozen=True)
class ControllerEvaluation:
    """What a controller comes to."""

    pool: str
    questions: int
    seed: int
    hard_usd: float | None
    """What an episode could cost at most, whatever its mode."""
    modes: tuple[ModeEvaluation, ...]


Watch = Callable[[int, int], None]
"""Is told how many steps of how many are done."""


def evaluate(
    opened: PoolSession,
    n: int = 500,
    seed: int = 0,
    *,
    hard_nano: int | None = None,
    watch: Watch = lambda *_: None,
) -> ControllerEvaluation:
    """Play n fresh questions of the part `test` in each mode.

    `hard_nano` is what an episode may cost at most, in nano-dollars; None: no such limit.
    """
    steps = len(opened.modes) + 2
    questions = opened.pool.questions.sample("test", n, seed)
    others = choosing(opened, len(cells_of(questions)))
    cells = cells_of(questions)
    if set(cells) <= set(cells_of(others)):
        others = [one for one in others if (one.group or ALL) in cells]
    else:
        cells = (ALL,)
    watch(0, steps)
    before = every_plan(opened, recorded(opened, others, cells))
    watch(1, steps)
    here = every_plan(opened, recorded(opened, questions, cells))
    found = []
    for at, mode in enumerate(opened.modes):
        watch(2 + at, steps)
        episodes = greedy(opened, questions, mode, hard_nano)
        found.append(_in_mode(opened, questions, episodes, cells, (before, here)))
    watch(steps, steps)
    hard = None if hard_nano is None else usd_from_nano(hard_nano)
    return ControllerEvaluation(opened.pool.name, len(questions), seed, hard, tuple(found))


def choosing(opened: PoolSession, cells: int) -> list[Question]:
    """Return the questions on which plans are chosen: of the part `calibrate`."""
    return opened.pool.questions.sample("calibrate", EACH * cells, CHOOSING_SEED)


def greedy(
    opened: PoolSession, questions: Sequence[Question], mode: Mode, hard_nano: int | None = None
) -> list[Episode]:
    """Return the controller's episodes where it takes the likeliest tokens."""
    asked = [(question.text, mode) for question in questions]
    sampling = RolloutSampling(temperature=0.0, hard_nano=hard_nano)
    generator = np.random.default_rng(0)  # of seeds that nobody uses
    return rollouts(opened.voice, opened.rules, asked, opened.experts, generator, sampling)


def _in_mode(
    opened: PoolSession,
    questions: Sequence[Question],
    episodes: Sequence[Episode],
    cells: tuple[str, ...],
    played: tuple[PlayedPlans, PlayedPlans],
) -> ModeEvaluation:
    """Return what came of a mode, beside plans as chosen on other questions and as played here."""
    before, here = played
    mode = episodes[0].mode
    budget = mode.budget_nano
    right = graded(opened, questions, episodes)
    cost = np.array([episode.cost_nano for episode in episodes])
    called = np.array([bool(episode.calls) for episode in episodes])
    chosen = best(before, budget)
    hindsight = best(here, budget)
    ways = simple_ways(here, budget, hops_of(cells))
    earned = right & (cost <= budget)

    of_plan = here.earned(budget)
    each = []
    for at, (name, plan) in enumerate(zip(cells, chosen.tolist(), strict=True)):
        rows = here.population.cell == at
        each.append(
            CellEvaluation(
                name=name,
                questions=int(rows.sum()),
                accuracy=float(right[rows].mean()),
                call_ratio=float(called[rows].mean()),
                cost_usd=usd_from_nano(cost[rows].mean()),
                best_plan=here.plans[plan].named(here.population.names),
                best_plan_reward=float(of_plan[plan, at]),
            )
        )

    def ahead(of: IntArray | FloatArray) -> IntervalEstimate:
        return mean(earned - rewards(here, of, budget))

    return ModeEvaluation(
        mode=mode,
        accuracy=share(right),
        cost_usd=mean(cost / 1e9),
        call_ratio=share(called),
        over_budget=share(cost > budget),
        reward=share(earned),
        malformed=float(np.mean([bool(episode.malformed) for episode in episodes])),
        refused=sum(episode.refused for episode in episodes),
        failed=sum(bool(call.error) for episode in episodes for call in episode.calls),
        dearest_usd=usd_from_nano(cost.max()),
        best_plan=outcome(here, chosen, budget),
        hindsight=outcome(here, hindsight, budget),
        baselines={name: outcome(here, odds, budget) for name, odds in ways.items()},
        best_single=_best_single(before.population, here.population, right, cost),
        ahead={"best plan": ahead(chosen)} | {name: ahead(odds) for name, odds in ways.items()},
        cells=tuple(each),
    )


def _best_single(
    before: Population, here: Population, right: BoolArray, cost_nano: IntArray
) -> BestSingle:
    k = int((before.right @ before.weight).argmax())
    theirs = here.right[k] > 0
    gained, (low, high) = accuracy_difference(right, theirs)
    return BestSingle(
        expert=here.names[k],
        accuracy=float(theirs.mean()),
        cost_usd=usd_from_nano(here.cost_nano[k].mean()),
        accuracy_difference=IntervalEstimate(gained, low, high),
        cost_difference_usd=mean((cost_nano - here.cost_nano[k]) / 1e9),
    )


def hops_of(cells: Sequence[str]) -> IntArray | None:
    """Return the difficulty that cells have in their names; None where they have none.

    >>> hops_of(["sums-1", "sums-7"]), hops_of(["algebra"])
    (array([1, 7]), None)
    """
    ends = [cell.rpartition("-")[2] for cell in cells]
    return np.array([int(end) for end in ends]) if all(map(str.isdecimal, ends)) else None


def share(yes: BoolArray) -> IntervalEstimate:
    """Return a share with its exact interval.

    >>> share(np.array([True, False, True, True])).value
    0.75
    """
    return IntervalEstimate(float(yes.mean()), *clopper_pearson(int(yes.sum()), len(yes)))


def mean(values: FloatArray, level: float = 0.95) -> IntervalEstimate:
    """Return a mean with Student's interval.

    >>> mean(np.array([1.0, 2.0, 3.0])).value
    2.0
    """
    middle, n = float(values.mean()), len(values)
    if n < 2:
        return IntervalEstimate(middle, math.nan, math.nan)
    half = t_quantile((1 + level) / 2, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    return IntervalEstimate(middle, middle - half, middle + half)

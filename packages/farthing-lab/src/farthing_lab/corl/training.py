"""Train a pool's controller, and write it as a folder that evaluates and runs.

`train` teaches by reinforcement when to call whom. `warm_start` comes before: from episodes that a
program writes the controller learns how to answer, to call and to read a reply. For each question
there is one in which it answers by itself, and one for each expert, whose reply it repeats, right
or wrong. Each has a mode at random: nothing tells it when to call.

OUT/.training keeps what is needed to go on after a kill; it goes when the controller is written.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import transformers

from farthing import plugins
from farthing.errors import InputError
from farthing.money import usd_from_nano
from farthing.tasks.base import Question
from farthing.traces.arrays import IntArray
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import ControllerTurn, Episode, stripped
from farthing_lab.corl.episode import begin as begin_episode
from farthing_lab.corl.evaluation import check_replies
from farthing_lab.corl.learner import TrainingLog, TrainingSchedule, TrainingTask, Watch, learn
from farthing_lab.corl.pool import CARD, TRAINING, Card, ControllerPool, check_out, settle
from farthing_lab.corl.rollouts import (
    PLAIN,
    ExpertReply,
    PoolSession,
    chat_layout,
    heard,
    trajectory,
)
from farthing_lab.lm import supervised
from farthing_lab.lm.adapters import adapt, adapted, learning, save
from farthing_lab.lm.masked_ppo import Settings
from farthing_lab.lm.supervised import Example, TrainingCourse, TrainingProgress
from farthing_lab.models.weights import quiet
from farthing_lab.rl.collapse import CallPrices

ASKED = 120
"""Questions on which each expert is asked once, so that it is known what its calls cost."""


@dataclass(frozen=True)
class TrainingPlan:
    """How a controller is to be trained; a training that goes on needs the same."""

    reward: str = "hard-gate"
    """A name of `farthing.rewards`."""
    sampler: str = "rollouts"
    """A name of `farthing.samplers`."""
    allocation: str = "even"
    """A name of `farthing.allocations`."""
    course: TrainingSchedule = field(default_factory=TrainingSchedule)
    settings: Settings = field(default_factory=Settings)
    seed: int = 0


def pool_side(pool: ControllerPool) -> dict[str, Any]:
    """Return what of a pool a training depends on, as JSON values."""
    return {
        "pool": pool.name,
        "style": pool.style,
        "modes": {mode.name: mode.budget_nano for mode in pool.modes},
        "most_turns": pool.most_turns,
        "max_tokens": pool.max_tokens,
        "hooks": pool.hooks,
        "weights": str(pool.weights()),
        "experts": {name: pool.models.sections[name].settings.model for name in pool.experts},
        "prices": {name: str(pool.price(name)) for name in (pool.controller, *pool.experts)},
    }


def train(
    opened: PoolSession, plan: TrainingPlan, out: Path, watch: Watch = lambda _: None
) -> TrainingLog:
    """Train the pool's controller by reinforcement, and write its folder.

    `out` gets the weights, the tokenizer and `controller.json`. A training that was killed goes on
    from what is there. `watch` is told after each update.
    """
    check_out(out)
    reward = plugins.load("rewards", plan.reward)
    sampler = plugins.load("samplers", plan.sampler)
    allocation = plugins.load("allocations", plan.allocation)
    begin(out, {**pool_side(opened.pool), **asdict(plan)})
    costs = call_costs(opened)
    least = min(int(some.min()) for some in costs.values())
    lesson = TrainingTask(
        voice=opened.voice,
        rules=opened.rules,
        modes=opened.modes,
        experts=opened.experts,
        task=opened.task,
        draw=lambda generator: opened.pool.questions.draw("train", generator),
        reward=reward,
        sampler=sampler,
        allocation=allocation,
        prices=CallPrices(least, {mode.name: mode.budget_nano for mode in opened.modes}),
    )
    kept = out / TRAINING / "state"
    log = learn(lesson, plan.course, plan.settings, seed=plan.seed, folder=kept, watch=watch)
    write(opened, out, asdict(plan), costs, log)
    return log


def call_costs(opened: PoolSession) -> dict[str, IntArray]:
    """Return what calls of each expert cost, on questions to train, in nano-dollars."""
    questions = opened.pool.questions.sample("train", ASKED, 0)
    names = opened.rules.names
    replies = opened.experts.ask([(name, one.text) for name in names for one in questions])
    costs = np.array([reply.cost_nano for reply in replies]).reshape(len(names), -1)
    return dict(zip(names, costs, strict=True))


def begin(out: Path, plan: Mapping[str, Any]) -> None:
    """Write down the plan, or hold it to the one that was begun.

    What an older version did not write down is not compared.
    """
    file, text = out / TRAINING / "plan.json", json.dumps(plan, indent=1)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return
    now, before = json.loads(text), json.loads(file.read_text())
    changed = [
        place for name in sorted(now.keys() & before) for place in _changed(now, before, name)
    ]
    if changed:
        raise InputError(
            f"{out}: holds a training that was begun with other settings ({', '.join(changed)}); "
            "give the same to go on, or name another folder"
        )


def _changed(
    now: Mapping[str, Any], before: Mapping[str, Any], name: str, above: str = ""
) -> list[str]:
    """Return where two records differ under a name, such as `prices.large`."""
    new, old = now.get(name), before.get(name)
    if new == old:
        return []
    if not isinstance(new, dict) or not isinstance(old, dict):
        return [f"{above}{name}"]
    names = sorted(new.keys() | old)
    return [place for inner in names for place in _changed(new, old, inner, f"{above}{name}.")]


def write(
    opened: PoolSession,
    out: Path,
    said: dict[str, Any],
    costs: Mapping[str, IntArray],
    log: TrainingLog,
) -> None:
    """Write a controller that was taught by a plan, `said`; where its card is, all of it is."""
    card = Card(
        pool=opened.pool.name,
        modes_usd={mode.name: usd_from_nano(mode.budget_nano) for mode in opened.modes},
        style=opened.pool.style,
        most_turns=opened.pool.most_turns,
        call_cost_usd={name: usd_from_nano(float(some.mean())) for name, some in costs.items()},
        seed=said.pop("seed"),
        settings=said,
        updates=[asdict(one) for one in log.updates],
        stopped=log.stopped,
        hooks=opened.pool.hooks,
    )
    made = out / TRAINING / "made"
    with quiet(transformers):
        save(opened.voice.network, made)
        opened.tokenizer.save_pretrained(made)
    (made / CARD).write_bytes(msgspec.json.format(msgspec.json.encode(card), indent=1) + b"\n")
    settle(made, out)
    shutil.rmtree(out / TRAINING)


LINES = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
"""How a controller in the style `compact` reads a conversation: a line a message. A model's own
template may take more tokens than all that is said."""
COURSE = TrainingCourse(steps=160, batch=16, muon=0.0, adam=1e-3, warm=8)
"""AdamW for all of it: Muon is for whole matrices."""


@dataclass(frozen=True)
class WarmStartPlan:
    """How a controller is to be taught; what goes on after a kill needs the same."""

    lora: int = 16
    """Rank of the adapter that learns; 0: all weights learn."""
    questions: int = 400
    """That it learns from; each expert is asked each of them once."""
    course: TrainingCourse = field(default_factory=lambda: COURSE)
    seed: int = 0


def warm_start(
    opened: PoolSession, plan: WarmStartPlan, out: Path, watch: supervised.Watch = lambda _: None
) -> TrainingProgress:
    """Teach the pool's controller by examples, and write its folder.

    `out` gets the adapter or the weights, the tokenizer and `controller.json`. What was killed goes
    on from what is there. `watch` is told after each bucket of batches.
    """
    check_out(out)
    opened, pool = _compact(opened), opened.pool
    begin(out, {**pool_side(pool), **asdict(plan)})
    network = opened.voice.network
    if plan.lora and not adapted(network):
        adapt(network, plan.lora, pool.weights_name(), plan.seed)
    if adapted(network):
        learning(network)
    questions = pool.questions.sample("train", plan.questions, plan.seed)
    examples = examples_of(opened, demonstrations(opened, questions, plan.seed))

    def draw(generator: np.random.Generator) -> Example:
        return examples[int(generator.integers(len(examples)))]

    kept = out / TRAINING / "state"
    done = supervised.train(network, draw, plan.course, seed=plan.seed, folder=kept, watch=watch)
    write(opened, out, asdict(plan), call_costs(opened), TrainingLog())
    return done


def demonstrations(opened: PoolSession, questions: Sequence[Question], seed: int) -> list[Episode]:
    """Return an episode for each question and each way to an answer."""
    generator, modes, names = np.random.default_rng(seed), opened.modes, opened.rules.names
    asked = names if opened.rules.most_turns > 1 else ()
    replies = [opened.experts.ask([(name, one.text) for one in questions]) for name in asked]
    check_replies(asked, replies)
    found: list[Episode] = []
    for question, *said in zip(questions, *replies, strict=True):
        for way in (None, *zip(asked, said, strict=True)):
            mode = modes[int(generator.integers(len(modes)))]
            found += _written(opened, question, mode, way)
    if not found:
        raise InputError("no question has an accepted answer; a controller learns from those")
    return found


def examples_of(opened: PoolSession, some: Sequence[Episode]) -> list[Example]:
    """Return episodes as examples: what the controller writes is learned, and nothing else."""
    encode, layout = opened.voice.encode, opened.voice.layout
    made = (trajectory(one, 0.0, encode, layout) for one in some)
    return [
        Example(list(one.prompt_ids), list(one.response_ids), list(one.response_mask))
        for one in made
    ]


def _written(
    opened: PoolSession, question: Question, mode: Mode, way: tuple[str, ExpertReply] | None
) -> Iterator[Episode]:
    """Yield the episode of one way to an answer; nothing where that leads to none."""
    play = begin_episode(opened.rules, question.text, mode)
    answer = question.gold[0] if question.gold else ""
    if way is not None:
        expert, reply = way
        answer = "" if reply.error else reply.text
        play = play.wrote(ControllerTurn(f"<call>{expert}</call>"))
        play = heard(play, expert, reply)
    if said := stripped(opened.task.normalise(answer)).strip():
        yield play.wrote(ControllerTurn(f"<answer>{said}</answer>")).episode()


def _compact(opened: PoolSession) -> PoolSession:
    """Return a pool whose controller reads a line a message, where its style is compact.

    Where the weights are an embedded model's, that is so already.
    """
    tokenizer, voice = opened.tokenizer, opened.voice
    if opened.pool.style != "compact" or voice.layout == PLAIN:
        return opened
    tokenizer.chat_template = LINES
    layout = chat_layout(tokenizer, opened.pool.weights())
    return replace(opened, voice=replace(voice, layout=layout))

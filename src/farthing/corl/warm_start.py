"""Teach a controller how to answer, to call and to read a reply, before any reinforcement.

It learns from episodes that a program writes. For each question there is one in which it answers by
itself, and one for each expert, whose reply it repeats, right or wrong. Each has a mode at random:
nothing tells it when to call. That is left to reinforcement learning.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from farthing.corl.base import Episode, Mode
from farthing.corl.checkpoint import TRAINING, check_out
from farthing.corl.episode import Written
from farthing.corl.episode import begin as begin_episode
from farthing.corl.experts import Reply
from farthing.corl.learner import Log
from farthing.corl.population import check_replies
from farthing.corl.rollouts import heard
from farthing.corl.session import Opened, chat_layout
from farthing.corl.syntax import stripped
from farthing.corl.training import begin, call_costs, card_of, pool_side, write
from farthing.corl.trajectory import PLAIN, trajectory
from farthing.errors import InputError
from farthing.lm.adapters import adapt, adapted, learning
from farthing.lm.supervised import Course, Example, Progress, Watch, train
from farthing.tasks.base import Question

LINES = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
"""How a controller in the style `compact` reads a conversation: a line a message. A model's own
template may take more tokens than all that is said."""
COURSE = Course(steps=160, batch=16, muon=0.0, adam=1e-3, warm=8)
"""AdamW for all of it: Muon is for whole matrices."""


@dataclass(frozen=True)
class Plan:
    """How a controller is to be taught; what goes on after a kill needs the same."""

    lora: int = 16
    """Rank of the adapter that learns; 0: all weights learn."""
    questions: int = 400
    """That it learns from; each expert is asked each of them once."""
    course: Course = field(default_factory=lambda: COURSE)
    seed: int = 0


def warm(opened: Opened, plan: Plan, out: Path, watch: Watch = lambda _: None) -> Progress:
    """Teach the pool's controller, and write its folder.

    Args:
        opened: the pool; its controller learns.
        plan: how.
        out: gets the adapter or the weights, the tokenizer and `controller.json`. What was killed
            goes on from what is there.
        watch: is told after each bucket of batches.

    Raises:
        InputError: the folder holds something else, or what was begun by another plan; an expert
            never replied.
    """
    check_out(out)
    opened, pool = _compact(opened), opened.pool
    begin(out, json.loads(json.dumps({**pool_side(pool), **asdict(plan)})))
    network = opened.voice.network
    if plan.lora and not adapted(network):
        adapt(network, plan.lora, pool.weights_name(), plan.seed)
    if adapted(network):
        learning(network)
    questions = pool.questions.sample("train", plan.questions, plan.seed)
    examples = examples_of(opened, episodes(opened, questions, plan.seed))

    def draw(generator: np.random.Generator) -> Example:
        return examples[int(generator.integers(len(examples)))]

    kept = out / TRAINING / "state"
    done = train(network, draw, plan.course, seed=plan.seed, folder=kept, watch=watch)
    write(opened, out, card_of(opened, asdict(plan), call_costs(opened), Log()))
    return done


def episodes(opened: Opened, questions: Sequence[Question], seed: int) -> list[Episode]:
    """Return an episode for each question and each way to an answer.

    Raises:
        InputError: an expert never replied, or no question has an answer.
    """
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


def examples_of(opened: Opened, some: Sequence[Episode]) -> list[Example]:
    """Return episodes as examples: what the controller writes is learned, and nothing else."""
    encode, layout = opened.voice.encode, opened.voice.layout
    made = (trajectory(one, 0.0, encode, layout) for one in some)
    return [
        Example(list(one.prompt_ids), list(one.response_ids), list(one.response_mask))
        for one in made
    ]


def _written(
    opened: Opened, question: Question, mode: Mode, way: tuple[str, Reply] | None
) -> Iterator[Episode]:
    """Yield the episode of one way to an answer; nothing where that leads to none."""
    play = begin_episode(opened.rules, question.text, mode)
    answer = question.gold[0] if question.gold else ""
    if way is not None:
        expert, reply = way
        answer = "" if reply.error else reply.text
        play = play.wrote(Written(f"<call>{expert}</call>"))
        play = heard(play, expert, reply)
    if said := stripped(opened.task.normalise(answer)).strip():
        yield play.wrote(Written(f"<answer>{said}</answer>")).episode()


def _compact(opened: Opened) -> Opened:
    """Return a pool whose controller reads a line a message, where its style is compact.

    Where the weights are an embedded model's, that is so already.
    """
    tokenizer, voice = opened.tokenizer, opened.voice
    if opened.pool.style != "compact" or voice.layout == PLAIN:
        return opened
    tokenizer.chat_template = LINES
    layout = chat_layout(tokenizer, opened.pool.weights())
    return replace(opened, voice=replace(voice, layout=layout))

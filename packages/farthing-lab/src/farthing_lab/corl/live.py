"""Ask a controller one question live: models answer, and the meter pays."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from farthing.errors import InputError, ModelError
from farthing.models.base import Message, Model, Prompt
from farthing.money import nano_from_usd
from farthing.runtime.agents.base import PlainAgent
from farthing.tasks.base import Question
from farthing_lab.corl.base import Mode
from farthing_lab.corl.policy import ControllerPolicy
from farthing_lab.corl.pool import ControllerPool
from farthing_lab.corl.runner import Controlled, Controller, ControllerSampling
from farthing_lab.corl.syntax import prompt
from farthing_lab.lm import symbols
from farthing_lab.models.embedded import EmbeddedSettings
from farthing_lab.models.local import LocalSettings


def controller_of(pool: ControllerPool, models: Mapping[str, Model]) -> Controller:
    """Return a pool's controller, who takes its likeliest tokens, and its experts.

    Args:
        pool: whose task, rules and limits they keep.
        models: opened, by the names of the pool's sections.

    Raises:
        UnpricedModelError: nothing says what one of them costs.
    """
    task = pool.grader()
    return Controller(
        model=models[pool.controller],
        experts=[
            PlainAgent(models[name], name, task.normalise, pool.max_tokens) for name in pool.experts
        ],
        rules=pool.rules,
        task=task,
        sampling=ControllerSampling(pool.max_tokens),
        shown="answer" if pool.style == "compact" else "text",
    )


def check_readable(pool: ControllerPool, *questions: str) -> None:
    """Refuse questions or a style of prompt with symbols that the pool's controller does not have.

    The networks of the project's own symbols leave out what they do not know: they would play, and
    never have been told what the prompt says. Other vocabularies have every byte.
    """
    if reads_symbols_alone(pool):
        check_symbols(pool, *questions)


def reads_symbols_alone(pool: ControllerPool) -> bool:
    """Return whether a pool's controller is a network of the project's own symbols."""
    settings = pool.models.sections[pool.controller].settings
    return isinstance(settings, EmbeddedSettings | LocalSettings) and _ours(pool.weights())


def check_symbols(pool: ControllerPool, *questions: str) -> None:
    """Refuse questions or a style of prompt that the project's own symbols cannot write."""
    for question in questions:
        if lacking := symbols.unknown(question):
            raise InputError(
                f"the controller has {len(symbols.SYMBOLS)} symbols, and '{question:.60}' has "
                f"others, such as {' '.join(lacking[:3])}; ask chains such as b=a*3+5;a=4;b?"
            )
    for mode in pool.modes:
        messages = prompt(pool.style, mode, pool.rules.experts, "")
        lacking = symbols.unknown("".join(message.content for message in messages))
        if lacking:
            remedy = "name the modes low, medium, high"
            if pool.style != "compact":
                remedy = "use the style compact (--prompt compact, or style in the pool's file)"
            raise InputError(
                f"the controller has {len(symbols.SYMBOLS)} symbols, and its prompt in the mode "
                f"{mode.name}, style {pool.style}, has others, such as "
                f"{' '.join(lacking[:3])}; {remedy}"
            )


def _ours(folder: Path) -> bool:
    file = folder / "tokenizer.json"
    try:
        vocabulary = msgspec.json.decode(file.read_bytes())["model"]["vocab"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return False
    return bool(vocabulary == symbols.NUMBERS)


@dataclass(frozen=True)
class Dearest:
    """What it had cost to ask the dearest expert instead."""

    expert: str
    cost_nano: int | None
    """None where nobody knows."""
    measured: bool
    """Whether it was asked this question; else it is the mean of other questions."""


@dataclass(frozen=True)
class LiveAnswer:
    """What came of a question, and what the dearest expert had cost."""

    mode: Mode
    hard_nano: int | None
    """What could be paid at most, in nano-dollars; None: no limit."""
    done: Controlled
    dearest: Dearest


def ask(
    pool: ControllerPool,
    question: str,
    mode: str,
    *,
    budget_nano: int | None = None,
    known_usd: dict[str, float] | None = None,
) -> LiveAnswer:
    """Have the pool's controller answer a question in a mode, by its name.

    At most `budget_nano` nano-dollars are paid; None: no limit. `known_usd` says what a call of
    each expert costs on average, where that is known.
    """
    if not question.strip():
        raise InputError("the question is empty; give its text")
    pool.questions.check(question)
    check_readable(pool, question)
    chosen = ControllerPolicy(pool.rules, pool.modes).mode(mode)
    models = pool.models.open()
    named = Question(f"ask-{sha256(question.encode()).hexdigest()[:12]}", question)

    async def play() -> LiveAnswer:
        try:
            controller = controller_of(pool, models)
            done = await controller.answer(named, chosen, budget_nano=budget_nano)
            dearest = await _dearest(pool, models, done, known_usd or {})
            return LiveAnswer(chosen, budget_nano, done, dearest)
        finally:
            await asyncio.gather(*(model.aclose() for model in models.values()))

    return asyncio.run(play())


async def _dearest(
    pool: ControllerPool, models: dict[str, Model], done: Controlled, known_usd: dict[str, float]
) -> Dearest:
    """Return what asking the dearest expert costs; one that runs here is asked, others are not."""
    prompt = Prompt((Message("user", done.episode.question),), max_tokens=pool.max_tokens)
    known = known_usd if set(pool.experts) <= known_usd.keys() else {}

    def price(name: str) -> tuple[float, int]:
        return known.get(name, 0.0), models[name].largest_cost_nano(prompt)

    expert = max(pool.experts, key=price)
    for call in done.episode.calls:
        if call.expert == expert and call.asked == done.episode.question and not call.error:
            return Dearest(expert, call.cost_nano, measured=True)
    if isinstance(pool.models.sections[expert].settings, EmbeddedSettings | LocalSettings):
        try:
            return Dearest(expert, (await models[expert].complete(prompt)).cost_nano, measured=True)
        except ModelError:
            return Dearest(expert, None, measured=False)
    mean = known_usd.get(expert)
    return Dearest(expert, None if mean is None else nano_from_usd(mean), measured=False)

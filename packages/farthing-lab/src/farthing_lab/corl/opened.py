"""A pool's controller with its models opened, ready to answer live; and what it cannot read.

Nothing here imports PyTorch: a model that needs it brings it when it is opened.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from farthing.errors import InputError
from farthing.models.base import Model
from farthing.runtime.agents.base import PlainAgent
from farthing_lab.corl.pool import ControllerPool
from farthing_lab.corl.runner import Controller, ControllerSampling
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

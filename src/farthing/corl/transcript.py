"""Whether a controller's symbols suffice for what its prompts say."""

from pathlib import Path

import msgspec

from farthing.corl.pool import Pool
from farthing.corl.prompt import prompt
from farthing.errors import InputError
from farthing.lm import symbols
from farthing.models.embedded import EmbeddedSettings
from farthing.models.local import LocalSettings


def check_readable(pool: Pool, *questions: str) -> None:
    """Refuse questions or a style of prompt with symbols that the pool's controller does not have.

    The networks of the project's own symbols leave out what they do not know: they would play, and
    never have been told what the prompt says. Other vocabularies have every byte.

    Raises:
        InputError: a question or a mode's prompt has such symbols, or there are no weights.
    """
    settings = pool.models.sections[pool.controller].settings
    if not isinstance(settings, EmbeddedSettings | LocalSettings) or not _ours(pool.weights()):
        return
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
    """Return whether a folder's tokenizer has the project's own symbols."""
    file = folder / "tokenizer.json"
    try:
        vocabulary = msgspec.json.decode(file.read_bytes())["model"]["vocab"]
    except (OSError, msgspec.DecodeError, KeyError, TypeError):
        return False
    return bool(vocabulary == symbols.NUMBERS)

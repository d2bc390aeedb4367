"""A pool with its weights loaded and its experts opened: ready to play."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import msgspec

from farthing import plugins
from farthing.corl.base import Mode
from farthing.corl.episode import Rules
from farthing.corl.pool import ControllerPool
from farthing.corl.rollouts import FrozenExperts, Voice
from farthing.corl.syntax import prompt
from farthing.corl.trajectory import PLAIN, Decode, Encode, Layout
from farthing.errors import InputError, MissingExtraError
from farthing.lm import symbols
from farthing.models.base import Message
from farthing.models.embedded import EmbeddedSettings
from farthing.models.local import LocalSettings, ends_of
from farthing.models.prices import Price
from farthing.models.weights import load
from farthing.tasks.base import Task


@dataclass(frozen=True)
class PoolSession:
    """What episodes of a pool need."""

    pool: ControllerPool
    voice: Voice
    tokenizer: Any
    """Written beside weights that were trained."""
    experts: FrozenExperts
    rules: Rules
    task: Task

    @classmethod
    def of(cls, pool: ControllerPool, device: str = "cpu") -> Self:
        """Load the controller's weights and open the experts."""
        check_readable(pool, *pool.questions.texts)
        rules, task = pool.rules, pool.grader()
        voice, tokenizer = load_voice(
            pool.weights(), pool.price(pool.controller), pool.max_tokens, device
        )
        hooks = tuple(plugins.load("logits_hooks", name)(voice) for name in pool.hooks)
        voice = replace(voice, hooks=hooks)
        sections = {name: pool.models.sections[name] for name in pool.experts}
        models = replace(pool.models, sections=sections).open()
        shown = task.normalise if pool.style == "compact" else str
        experts = FrozenExperts(models, pool.max_tokens, shown)
        return cls(pool, voice, tokenizer, experts, rules, task)

    def __enter__(self) -> Self:
        """Return itself; leaving closes the experts."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the experts."""
        self.experts.__exit__()

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The pool's modes, from the cheapest."""
        return self.pool.modes


def load_voice(
    folder: Path, price: Price, max_tokens: int, device: str = "cpu"
) -> tuple[Voice, Any]:
    """Load a controller from a folder of the transformers library; return its tokenizer, too."""
    try:
        network, tokenizer = load(str(folder), "float32")
    except ImportError:
        raise MissingExtraError("a controller of one's own", "lm") from None
    except (OSError, ValueError) as error:
        problem = str(error).splitlines()[0]
        raise InputError(f"{folder}: the controller cannot be loaded: {problem}") from None
    network = network.to(device).eval()
    ends = ends_of(network, tokenizer)
    if tokenizer.get_vocab() == symbols.NUMBERS:
        reads: tuple[Encode, Decode, Layout] = symbols.encode, symbols.said, PLAIN
    else:
        reads = *_texts(tokenizer), chat_layout(tokenizer, folder)
    encode, decode, layout = reads
    return Voice(network, encode, decode, ends, layout, price, max_tokens), tokenizer


def chat_layout(tokenizer: Any, folder: Path) -> Layout:
    """Return how a tokenizer's chat template lays an episode out.

    What stands between two turns is read off a conversation that the template wrote.
    """
    if not tokenizer.chat_template:
        raise InputError(f"{folder}: its tokenizer has no chat template; a controller needs one")

    def begin(messages: Sequence[Message]) -> str:
        said = [{"role": message.role, "content": message.content} for message in messages]
        text: str = tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)
        return text

    question, own, reply = "first-text", "second-text", "third-text"
    speakers = (("user", question), ("assistant", own), ("user", reply))
    whole = begin([Message(role, text) for role, text in speakers])  # type: ignore[arg-type]
    start = begin([Message("user", question)])
    if not whole.startswith(f"{start}{own}") or whole.count(reply) != 1:
        raise InputError(f"{folder}: its chat template changes earlier turns; use another model")
    before, after = whole.removeprefix(f"{start}{own}").split(reply)
    return Layout(begin, before, after)


def _texts(tokenizer: Any) -> tuple[Encode, Decode]:
    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False)
        return ids

    def decode(ids: Sequence[int]) -> str:
        text: str = tokenizer.decode(ids, skip_special_tokens=True)
        return text

    return encode, decode


def check_readable(pool: ControllerPool, *questions: str) -> None:
    """Refuse questions or a style of prompt with symbols that the pool's controller does not have.

    The networks of the project's own symbols leave out what they do not know: they would play, and
    never have been told what the prompt says. Other vocabularies have every byte.
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

"""A pool with its weights loaded and its experts opened: ready to play."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from farthing import plugins
from farthing.errors import InputError, MissingExtraError
from farthing.models.base import Message
from farthing.models.prices import Price
from farthing.tasks.base import Task
from farthing_lab.corl.base import Mode
from farthing_lab.corl.episode import Rules
from farthing_lab.corl.live import check_readable
from farthing_lab.corl.pool import ControllerPool
from farthing_lab.corl.rollouts import PLAIN, Decode, Encode, FrozenExperts, Layout, Voice
from farthing_lab.lm import symbols
from farthing_lab.models.local import ends_of
from farthing_lab.models.weights import load


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
        return self

    def __exit__(self, *_: object) -> None:
        self.experts.__exit__()

    @property
    def modes(self) -> tuple[Mode, ...]:
        return self.pool.modes


def load_voice(
    folder: Path, price: Price, max_tokens: int, device: str = "cpu"
) -> tuple[Voice, Any]:
    """Load a controller from a folder of the transformers library; return its tokenizer, too."""
    try:
        network, tokenizer = load(str(folder), "float32", device)
    except ImportError:
        raise MissingExtraError("a controller of one's own", "lm", "farthing-lab") from None
    except (OSError, ValueError) as error:
        problem = str(error).splitlines()[0]
        raise InputError(f"{folder}: the controller cannot be loaded: {problem}") from None
    network.eval()
    ends = ends_of(network, tokenizer)
    reads: tuple[Encode, Decode, Layout] = symbols.encode, symbols.said, PLAIN
    if tokenizer.get_vocab() != symbols.NUMBERS:
        encode = partial(tokenizer.encode, add_special_tokens=False)
        decode = partial(tokenizer.decode, skip_special_tokens=True)
        reads = encode, decode, chat_layout(tokenizer, folder)
    return Voice(network, *reads[:2], ends, reads[2], price, max_tokens), tokenizer


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

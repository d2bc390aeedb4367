"""The folder of a trained controller: weights, tokenizer, and a card that says how it was made."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from farthing.errors import InputError
from farthing.money import nano_from_usd
from farthing_lab.corl.base import Mode
from farthing_lab.corl.pool import BUILT_IN, ControllerPool, find
from farthing_lab.corl.syntax import Style
from farthing_lab.models.embedded import WEIGHTS

CARD = "controller.json"
TRAINING = ".training"
"""What a training needs to go on, within the folder, while it is under way."""
SHIPPED = "corl-{}"
"""The folder of the controller of a pool that ships, beside the embedded models."""
DEFAULT = "four"
"""The pool, where none is named."""


class Card(msgspec.Struct, frozen=True):
    """What is known of a controller beside its weights."""

    pool: str
    """The name of a pool that ships, or its file."""
    modes_usd: dict[str, float]
    """B of each mode, the cheapest first."""
    style: Style
    most_turns: int
    call_cost_usd: dict[str, float]
    """What a call of each expert costs on average."""
    seed: int
    settings: dict[str, Any]
    """The reward, the course, and PPO's or GRPO's settings."""
    updates: list[dict[str, Any]]
    """A line an update."""
    stopped: str = ""
    """Why it stopped early; empty where it did not."""
    hooks: tuple[str, ...] = ()
    """What it learned under: names of `farthing.logits_hooks`."""

    @property
    def modes(self) -> tuple[Mode, ...]:
        return tuple(Mode(name, nano_from_usd(usd)) for name, usd in self.modes_usd.items())


def read_card(folder: Path) -> Card | None:
    """Return the card of a controller's folder; None where the weights have none."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of a controller; check the path")
    file = folder / CARD
    if not file.exists():
        if (folder / TRAINING).is_dir():
            raise InputError(
                f"{folder}: holds a training that is not over; the command that began it goes on"
            )
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=Card)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: is no card of a controller ({error})") from None


@dataclass(frozen=True)
class PoolController:
    """A controller in its pool."""

    pool: ControllerPool
    card: Card | None


def pool_of(folder: Path | None, name: str | None, weights: Path = WEIGHTS) -> PoolController:
    """Return the pool that a controller plays in: of this name, else the one it was trained in.

    Without a folder it is the pool's own controller, which for `two` and `four` lies in `weights`.
    """
    if folder is None:
        own = weights / SHIPPED.format(name or DEFAULT)
        if not own.is_dir():
            return PoolController(find(name or DEFAULT), None)
        folder = own
    card = read_card(folder)
    if card is None:
        return PoolController(find(name or DEFAULT).speaking(folder), None)
    pool = replace(_pool_with(card, folder, name), hooks=card.hooks)
    if card.pool == pool.name:
        pool = replace(pool, modes=card.modes, style=card.style, most_turns=card.most_turns)
    return PoolController(pool.speaking(folder), card)


def _pool_with(card: Card, folder: Path, name: str | None) -> ControllerPool:
    """Return the pool of a name, or the card's own, with all experts that its controller knows."""
    if name is None and card.pool not in BUILT_IN and not Path(card.pool).is_file():
        raise InputError(
            f"{folder}: learned in the pool {card.pool}, which is not there; name one with --pool"
        )
    pool = find(name or card.pool)
    if unknown := sorted(card.call_cost_usd.keys() - set(pool.experts)):
        raise InputError(
            f"{folder}: learned to call {', '.join(unknown)}, and the pool {pool.name} has "
            f"{', '.join(pool.experts)}; name another pool, or train a controller in this one"
        )
    return pool


def pool_to_train(name: str, folder: Path | None, style: Style | None) -> ControllerPool:
    """Return a pool with other weights to begin with, or another style, where these are given."""
    pool = find(name)
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder of weights; check the path")
        pool = pool.speaking(folder)
    return pool if style is None else replace(pool, style=style)


def check_out(out: Path) -> None:
    """Refuse a folder that holds anything but a training that is under way."""
    if (out / CARD).exists():
        raise InputError(f"{out}: holds a controller already; name another folder")
    if out.is_dir() and any(out.iterdir()) and not (out / TRAINING).is_dir():
        raise InputError(f"{out}: is not empty; name another folder")


def settle(made: Path, out: Path, last: Sequence[str] = (CARD,)) -> None:
    """Move files into a folder, those that say that it is whole at the end."""
    names = sorted((file.name for file in made.iterdir()), key=lambda name: (name in last, name))
    for name in names:
        (made / name).replace(out / name)

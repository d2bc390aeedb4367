"""Low-rank adapters (LoRA, arXiv 2106.09685): few weights learn beside a network that stays.

The network as it was when a training began is a second adapter beside the first, so that a
reference and a critic need no copy of the large one. One of the two acts at a time.

The critics beside them say, before each token of an episode, what it will earn: B episodes, T
tokens, W numbers of a state.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy, deepcopy
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch.nn.functional import normalize

from farthing.errors import InputError, MissingExtraError

ACTING = "default"
"""The adapter that learns, and writes."""
BEGAN = "reference"
"""What it was when the training began."""


def adapted(network: Any) -> bool:
    """Return whether a network has an adapter."""
    return bool(getattr(network, "peft_config", None))


def adapt(network: Any, rank: int, base: str, seed: int) -> None:
    """Put an adapter beside every matrix of the layers; from now on it alone learns.

    It changes nothing before it has learned: one of its two factors begins as 0.

    Args:
        network: a causal language model of the transformers library, changed in place.
        rank: numbers through which an adapter's factors meet, 1 or more.
        base: what a folder of the adapter will name as its base: a folder, or `smollm2`.
        seed: of the other factor.
    """
    try:
        import peft  # noqa: PLC0415 - slow to load
    except ModuleNotFoundError:
        raise MissingExtraError("an adapter", "lm", "farthing-lab") from None
    # Nothing is dropped out: what samples an episode is what learns from it.
    shape = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear"
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network.add_adapter(shape, ACTING)
    network.peft_config[ACTING].base_model_name_or_path = base


def learning(network: Any) -> None:
    """Let the adapter learn; one that was loaded does not by itself."""
    if ACTING not in network.peft_config:
        names = ", ".join(network.peft_config)
        raise InputError(f"the adapter is called {names}; a training needs one called {ACTING}")
    network.set_adapter(ACTING)


def save(network: Any, folder: Path) -> None:
    """Write a network: of one with an adapter, the adapter alone, which names its base."""
    if not adapted(network):
        network.save_pretrained(folder)
        return
    shape = network.peft_config[ACTING]
    base = shape.base_model_name_or_path
    # Peft looks for the base, on the Hub if need be; it is where the network was loaded from.
    shape.base_model_name_or_path = network.name_or_path
    network.save_pretrained(folder)
    shape.base_model_name_or_path = base
    shape.save_pretrained(folder)


class Began:
    """A network with its adapter as it is now, whatever it learns later; without gradients."""

    def __init__(self, network: Any) -> None:
        self._network = network
        if BEGAN in network.peft_config:
            network.delete_adapter(BEGAN)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Already found", UserWarning)  # two are meant
            network.add_adapter(copy(network.peft_config[ACTING]), BEGAN)
        parts = dict(network.named_parameters())
        with torch.no_grad():
            for name, part in parts.items():
                if f".{BEGAN}." in name:
                    part.copy_(parts[name.replace(f".{BEGAN}.", f".{ACTING}.")])
        network.set_adapter(ACTING)

    def logits(self, tokens: Tensor) -> Tensor:
        """Return the logits of the token after each, [B, T, V]."""
        with self._acting():
            logits: Tensor = self._network(tokens).logits
        return logits

    def states(self, tokens: Tensor) -> Tensor:
        """Return what the last layer makes of each token and those before it, [B, T, W]."""
        with self._acting():
            states: Tensor = self._network.model(tokens).last_hidden_state
        return states

    @contextmanager
    def _acting(self) -> Iterator[None]:
        self._network.set_adapter(BEGAN)
        try:
            with torch.no_grad():
                yield
        finally:
            self._network.set_adapter(ACTING)


class Critic(Module):
    """Says, before each token, what the episode will earn: a trunk and one number."""

    def __init__(self, trunk: Module, width: int) -> None:
        super().__init__()
        self.trunk, self.head = trunk, _zero_head(width)

    @classmethod
    def beside(cls, network: Any) -> Self:
        """Return a critic that begins as a copy of a network's trunk, and stands where it does."""
        return cls(deepcopy(network.model), network.config.hidden_size).to(network.device)

    def seen(self, tokens: Tensor) -> Tensor:
        """Return what is computed once of a batch: nothing, as the trunk learns."""
        return tokens

    def forward(self, seen: Tensor) -> Tensor:
        """Return the value before each next token, [B, T]."""
        values: Tensor = self.head(self.trunk(seen).last_hidden_state)[..., 0]
        return values


class HeadCritic(Module):
    """A critic whose trunk does not learn: the network as it was when the training began.

    Its states are brought to length 1; those of pretrained networks are of any length.
    """

    def __init__(self, began: Began, width: int) -> None:
        super().__init__()
        self._began, self.head = began, _zero_head(width)

    @classmethod
    def of(cls, began: Began, network: Any) -> Self:
        """Return a critic that stands where the network does."""
        return cls(began, network.config.hidden_size).to(network.device)

    def seen(self, tokens: Tensor) -> Tensor:
        """Return what is computed once of a batch: all but the head, [B, T, W]."""
        return normalize(self._began.states(tokens), dim=-1)

    def forward(self, seen: Tensor) -> Tensor:
        """Return the value before each next token, [B, T]."""
        values: Tensor = self.head(seen)[..., 0]
        return values


def _zero_head(width: int) -> Linear:
    head = Linear(width, 1)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    return head

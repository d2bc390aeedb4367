"""Low-rank adapters (LoRA, arXiv 2106.09685): few weights learn beside a network that stays.

The network as it was when a training began is a second adapter beside the first, so that a
reference and a critic need no copy of the large one. One of the two acts at a time.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

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

    Raises:
        MissingExtraError: peft is absent.
    """
    try:
        import peft  # noqa: PLC0415 - slow to load
    except ModuleNotFoundError:
        raise MissingExtraError("an adapter", "lm") from None
    # Nothing is dropped out: what samples an episode is what learns from it.
    shape = peft.LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear"
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network.add_adapter(shape, ACTING)
    network.peft_config[ACTING].base_model_name_or_path = base


def learning(network: Any) -> None:
    """Let the adapter learn; one that was loaded does not by itself.

    Raises:
        InputError: the network has adapters of other names.
    """
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

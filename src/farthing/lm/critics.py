"""Value models of a controller: what an episode will earn, said before each of its tokens.

B episodes, T tokens, W numbers of a state.
"""

from copy import deepcopy
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import Linear, Module
from torch.nn.functional import normalize

from farthing.lm.adapters import Began


class Critic(Module):
    """Says, before each token, what the episode will earn: a trunk and one number."""

    def __init__(self, trunk: Module, width: int) -> None:
        super().__init__()
        self.trunk, self.head = trunk, _zero_head(width)

    @classmethod
    def beside(cls, network: Any) -> Self:
        """Return a critic that begins as a copy of a network's trunk."""
        return cls(deepcopy(network.model), network.config.hidden_size)

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

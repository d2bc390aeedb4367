"""Budget Guidance: a thought is steered so that it ends within a budget; the model stays as it is.

A predictor says, for every token y that could come next, how many more would follow it, the one
that ends the thought among them. That is a Gamma distribution of log(1 + remaining), whose shape
and rate are linear in the network's hidden state. With l the budget, without what ends the thought,
and t the tokens so far, the next token is drawn from

    p(y) P(remaining <= l - t | y), normalised

so that what leads to long thoughts becomes unlikely in good time, where a cut would only break off.
What ends the thought has probability 1 of fitting; where nothing is left, it alone does.

Source: Steering LLM Thinking with Budget Guidance (arXiv 2506.13752). Theirs predicts from a BERT
of the thought; this one from the hidden state, which is at hand while tokens are drawn.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farthing_lab.methods.thinkers.base import thinker_card

if TYPE_CHECKING:
    from torch import Tensor

    from farthing_lab.models.generation import Context, Hook

Thought = tuple[Sequence[int], Sequence[int]]
"""The prompt's ids, and those of a thought with the token that ends it."""


@dataclass(frozen=True)
class RemainingLength:
    """What is expected of the rest of a thought, for each token that could come next."""

    layer: Any
    """Linear, from the hidden state [d] to [2 V]."""

    def gamma(self, hidden: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return shape and rate, [B, d] to [B, V] each."""
        from torch.nn.functional import softplus  # noqa: PLC0415 - an extra

        shape, rate = self.layer(hidden).chunk(2, dim=-1)
        return softplus(shape) + 1e-3, softplus(rate) + 1e-3

    def fits(self, hidden: "Tensor", left: "Tensor") -> "Tensor":
        """Return the probability that no more than `left` [B] tokens follow each, [B, V]."""
        import torch  # noqa: PLC0415 - an extra

        shape, rate = self.gamma(hidden)
        within: Tensor = torch.special.gammainc(shape, rate * left.clamp_min(0).log1p()[:, None])
        return within.where(left[:, None] > 0, torch.zeros_like(within))


@dataclass(frozen=True)
class BudgetGuidance:
    """Fits the predictor to thoughts of the network itself."""

    steps: int = 600
    batch: int = 512
    rate: float = 0.01

    def fit(self, network: Any, thoughts: Sequence[Thought], seed: int) -> RemainingLength:
        """Fit it by maximum likelihood; every token of a thought but the last is an example."""
        import torch  # noqa: PLC0415 - an extra

        hidden, taken, remaining = _examples(network, thoughts)
        draws = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            layer = torch.nn.Linear(hidden.shape[1], 2 * network.config.vocab_size)
        found = RemainingLength(layer)
        optimizer = torch.optim.Adam(layer.parameters(), lr=self.rate)
        for _ in range(self.steps):
            rows = torch.randint(len(hidden), (self.batch,), generator=draws)
            shape, rate = found.gamma(hidden[rows])
            one = taken[rows, None]
            spread = torch.distributions.Gamma(shape.gather(1, one), rate.gather(1, one))
            likely = spread.log_prob(remaining[rows, None].log1p())  # type: ignore[no-untyped-call]
            loss = -likely.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return found


def _examples(network: Any, thoughts: Sequence[Thought]) -> "tuple[Tensor, Tensor, Tensor]":
    """Return hidden states [N, d], the tokens that were taken after them [N], what followed [N]."""
    import torch  # noqa: PLC0415 - an extra

    states, taken, remaining = [], [], []
    with torch.no_grad():
        for prompt, ids in thoughts:
            tokens = torch.tensor([[*prompt, *ids]])
            hidden = network.model(tokens).last_hidden_state[0]
            states.append(hidden[len(prompt) - 1 : len(prompt) + len(ids) - 2])
            taken.append(torch.tensor(ids[:-1]))
            remaining.append(torch.arange(len(ids) - 1, 0, -1, dtype=torch.float32))
    return torch.cat(states), torch.cat(taken), torch.cat(remaining)


@contextmanager
def guided(network: Any, predictor: RemainingLength, budget: int, ends: int) -> "Iterator[Hook]":
    """Yield the hook that keeps thoughts within a budget of tokens, while it is in force.

    Args:
        network: what draws; its hidden states are read as they come.
        predictor: what was fitted to it.
        budget: l, most tokens of a thought.
        ends: the token that ends a thought.
    """
    import torch  # noqa: PLC0415 - an extra

    seen: list[Tensor] = []

    def see(_module: Any, _inputs: Any, outputs: Any) -> None:
        seen[:] = [outputs.last_hidden_state[:, -1]]

    @torch.no_grad()
    def steer(logits: "Tensor", contexts: "Sequence[Context]") -> "Tensor":
        taken = [len(one.ids) - one.begun for one in contexts]
        left = torch.tensor([float(budget - one) for one in taken], device=logits.device)
        within = predictor.fits(seen[0], left)
        within[:, ends] = 1.0
        return logits + within.log()

    watching = network.model.register_forward_hook(see)
    try:
        yield steer
    finally:
        watching.remove()


BUDGET_GUIDANCE = thinker_card(
    name="budget-guidance",
    label="Budget Guidance",
    meaning="steers each next token by the chance that the thought still ends within its budget",
    make=BudgetGuidance(),
    paper="2506.13752",
    place=22,
)

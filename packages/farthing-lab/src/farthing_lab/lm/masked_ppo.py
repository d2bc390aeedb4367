"""Train a language model by PPO or GRPO on episodes that others wrote parts of.

The loss is taken of the controller's own tokens; what experts replied is context and nothing else.
B episodes, T tokens, prompt included.

Hooks of the generation are applied again to whole episodes: training sees what was drawn from.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.utils import clip_grad_norm_

from farthing.errors import InputError
from farthing.traces.arrays import FloatArray
from farthing_lab.lm.adapters import Began, Critic, HeadCritic, adapted, learning
from farthing_lab.models.generation import Context, Hook
from farthing_lab.rl import ppo
from farthing_lab.rl.discount import Discount
from farthing_lab.rl.group_advantage import group_advantage, over_tokens, shrunk_advantage
from farthing_lab.rl.ppo import masked_gae, place_reward, turn_discounts


def hooked(logits: Tensor, tokens: Tensor, ours: Tensor, hooks: Sequence[Hook]) -> Tensor:
    """Return the logits that the controller's tokens were drawn from, [B, T - 1, V].

    Roll-outs draw from what the hooks leave. So the policy is that distribution: the ratio of PPO,
    the entropy and the divergence from the reference, which is under the same hooks, are of it. A
    ratio to the network's own distribution would begin away from 1, and a token that a hook forced
    would count as the controller's choice. It has ratio 1, and no gradient.

    Args:
        logits: [B, T - 1, V] of the token after each, as the network makes them.
        tokens: [B, T] the episodes.
        ours: [B, T] whether the controller wrote the token.
        hooks: applied one after another, where a token of ours follows and nowhere else.
    """
    if not hooks:
        return logits
    places = ours[:, 1:].nonzero(as_tuple=True)
    contexts = []
    for ids, row in zip(tokens.tolist(), ours.tolist(), strict=True):
        begun = 0
        for at in range(1, len(row)):
            if row[at]:
                begun = begun if row[at - 1] else at  # how long its turn's prompt was
                contexts.append(Context(ids[:at], begun))
    rows = logits[places]
    for hook in hooks:
        rows = hook(rows, contexts)
    return logits.index_put(places, rows)


Logits = Callable[[Tensor], Tensor]
"""[B, T] token ids to [B, T, V] logits of the token after each."""


@dataclass(frozen=True)
class Settings:
    """How the controller learns; the defaults are ours, for networks below a million parameters."""

    advantage: Literal["gae", "group", "shrunk", "given"] = "group"
    """By a value model; by comparison with other episodes of the same prompt (GRPO); or with their
    mean drawn towards what was expected of the prompt (V_0.5); or as the batch says."""
    actor_rate: float = 1e-3
    critic_rate: float = 2e-3
    kl: float = 0.2
    """What a nat of divergence from the reference costs, per token."""
    kl_in: Literal["loss", "reward"] = "loss"
    """By its gradient, which draws back what hardly occurs any more; or out of the reward, as
    InstructGPT has it, where it says nothing of what never occurs. By group always the first."""
    entropy: float = 0.001
    """What a nat of entropy is worth, per token."""
    gamma: float = 1.0
    lam: float = 1.0
    discount: Discount = "fixed"
    """Whether a controller's turns have a discount of their own, by `rl/discount.py`; for `gae`."""
    clip: float = 0.2
    value_clip: float = 0.2
    epochs: int = 1
    """How often each episode is learned from."""
    minibatch: int = 32
    """Episodes of a step."""
    largest_norm: float = 1.0
    """Gradients are cut to it."""

    def __post_init__(self) -> None:
        if self.discount == "automatic" and self.advantage != "gae":
            raise InputError(
                f"advantages by {self.advantage} have no discount; with an automatic one take gae"
            )

    @property
    def penalised(self) -> bool:
        return self.kl_in == "loss" or self.advantage != "gae"


@dataclass(frozen=True)
class EpisodeBatch:
    """Episodes, filled up on the right."""

    tokens: Tensor
    """[B, T]"""
    ours: Tensor
    """[B, T] whether the controller wrote the token."""
    logprobs: Tensor
    """[B, T] of each token when it was sampled, after the hooks; 0 at others' tokens."""
    reward: Tensor
    """[B]"""
    group: Tensor
    """[B] the prompt's number."""
    prior: Tensor
    """[B] the reward that was expected of the prompt; 0 where nobody said."""
    given: Tensor
    """[B, T] the advantage of each token, for a training that is told it; 0 where nobody said."""

    @classmethod
    def of(
        cls,
        episodes: Sequence[tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[float]]],
        reward: FloatArray,
        group: Sequence[int],
        prior: FloatArray | None = None,
        given: Sequence[FloatArray] | None = None,
    ) -> Self:
        """Arrange episodes: the prompt's ids, then the response's ids, mask, log-probabilities.

        `given` has an advantage for each token of a response.
        """
        longest = max(len(prompt) + len(response) for prompt, response, _, _ in episodes)
        tokens = torch.zeros(len(episodes), longest, dtype=torch.long)
        ours = torch.zeros(len(episodes), longest, dtype=torch.bool)
        logprobs, advantage = torch.zeros(2, len(episodes), longest)
        for row, (prompt, response, mask, known) in enumerate(episodes):
            begin, end = len(prompt), len(prompt) + len(response)
            tokens[row, :end] = torch.tensor([*prompt, *response])
            ours[row, begin:end] = torch.tensor(mask, dtype=torch.bool)
            logprobs[row, begin:end] = torch.tensor(known)
            if given is not None:
                advantage[row, begin:end] = torch.tensor(given[row])
        return cls(
            tokens,
            ours,
            logprobs,
            torch.tensor(reward, dtype=torch.float32),
            torch.tensor(group, dtype=torch.long),
            torch.tensor(np.zeros(len(episodes)) if prior is None else prior, dtype=torch.float32),
            advantage,
        )

    def take(self, rows: Tensor) -> "EpisodeBatch":
        return EpisodeBatch(*(part[rows] for part in vars(self).values()))

    def on(self, device: torch.device) -> "EpisodeBatch":
        """Return the episodes where a network is."""
        return EpisodeBatch(*(part.to(device) for part in vars(self).values()))


@dataclass(frozen=True)
class UpdateFigures:
    """What an update did, each a mean over its episodes or their own tokens."""

    kl: float
    """Divergence from the reference, in nats a token."""
    entropy: float
    """In nats a token."""
    clip_fraction: float
    update_kl: float
    """How far the update moved, in nats a token."""
    policy_loss: float
    value_loss: float


@dataclass(frozen=True)
class Learners:
    """The networks of a training: one acts, one judges, one is what the first began as."""

    policy: Any
    reference: Logits
    critic: Critic | HeadCritic | None
    """None: advantages are by group, shrunk or not."""
    hooks: tuple[Hook, ...] = ()
    """What policy and reference are under, see `hooked`."""

    @classmethod
    def of(cls, network: Any, settings: Settings, hooks: tuple[Hook, ...] = ()) -> Self:
        """Return a network with its reference and critic.

        Where it has an adapter, only that learns, and nothing large is copied.
        """
        judged = settings.advantage == "gae"
        if adapted(network):
            learning(network)
            began = Began(network)
            head = HeadCritic.of(began, network) if judged else None
            return cls(network, began.logits, head, hooks)
        before = deepcopy(network).eval().requires_grad_(requires_grad=False)
        critic = Critic.beside(network) if judged else None
        return cls(network, lambda tokens: before(tokens).logits, critic, hooks)


class MaskedTrainer:
    """Makes a policy better, one batch of episodes after another."""

    def __init__(self, learners: Learners, settings: Settings) -> None:
        self.learners, self.settings = learners, settings
        learning = [p for p in learners.policy.parameters() if p.requires_grad]
        self.optimizers = {"actor": torch.optim.AdamW(learning, lr=0.0, weight_decay=0.0)}
        if learners.critic is not None:
            judging = learners.critic.parameters()
            self.optimizers["critic"] = torch.optim.AdamW(judging, lr=0.0, weight_decay=0.0)

    @property
    def modules(self) -> dict[str, Module]:
        named = {"policy": self.learners.policy}
        return named if self.learners.critic is None else named | {"critic": self.learners.critic}

    def update(
        self,
        batch: EpisodeBatch,
        factor: float,
        generator: np.random.Generator,
        turn: float = 1.0,
    ) -> UpdateFigures:
        """Learn from episodes that the present policy played.

        `factor` is the share of the learning rates, see `rl/schedules.py`; the generator puts the
        episodes in order; `turn` is the discount of a turn, where advantages are by `gae`.
        """
        settings = self.settings
        rates = {"actor": settings.actor_rate, "critic": settings.critic_rate}
        for name, optimizer in self.optimizers.items():
            for group in optimizer.param_groups:
                group["lr"] = rates[name] * factor
        device = next(self.learners.policy.parameters()).device
        judged = _JudgedEpisodes.of(batch.on(device), self.learners, settings, turn)
        figures: list[tuple[float, ...]] = []
        for _ in range(settings.epochs):
            order = torch.from_numpy(generator.permutation(len(batch.tokens)))
            parts = order.split(settings.minibatch)  # type: ignore[no-untyped-call]
            figures += [self._step(judged.take(rows)) for rows in parts]
        told = np.array(figures).mean(axis=0).tolist()
        return UpdateFigures(float(ppo.masked_mean(judged.divergence, judged.mask)), *told)

    def _step(self, judged: "_JudgedEpisodes") -> tuple[float, ...]:
        settings, mask = self.settings, judged.mask
        tokens, ours = judged.batch.tokens, judged.batch.ours
        logits = self.learners.policy(tokens).logits[:, :-1]
        logits = hooked(logits, tokens, ours, self.learners.hooks)
        new = ppo.token_log_probabilities(logits, judged.written, mask)
        loss = ppo.policy_loss(new, judged.old, judged.advantages, mask, settings.clip)
        spread = ppo.entropy(logits, mask)
        whole = loss - settings.entropy * spread
        if settings.penalised:
            whole = whole + settings.kl * ppo.kl_loss(new, judged.reference, mask)
        _descend(whole, self.optimizers["actor"], settings.largest_norm)
        error = self._judge_better(judged)
        clipped = ppo.clip_fraction(new, judged.old, mask, settings.clip)
        moved = ppo.approximate_kl(new, judged.old, mask)
        return tuple(one.item() for one in (spread, clipped, moved, loss, error))

    def _judge_better(self, judged: "_JudgedEpisodes") -> Tensor:
        if self.learners.critic is None:
            return torch.zeros(())
        values = self.learners.critic(judged.seen)[:, :-1]
        clip = self.settings.value_clip
        error = ppo.value_loss(values, judged.values, judged.returns, judged.mask, clip)
        _descend(error, self.optimizers["critic"], self.settings.largest_norm)
        return error.detach()


@dataclass(frozen=True)
class _JudgedEpisodes:
    """Episodes with what is computed once of each: [B, T - 1], of the token after each."""

    batch: EpisodeBatch
    seen: Tensor
    """[B, T, ...] what the critic reads."""
    written: Tensor
    mask: Tensor
    old: Tensor
    reference: Tensor
    divergence: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor

    @classmethod
    @torch.no_grad()
    def of(
        cls, batch: EpisodeBatch, learners: Learners, settings: Settings, turn: float
    ) -> "_JudgedEpisodes":
        written, mask, old = batch.tokens[:, 1:], batch.ours[:, 1:], batch.logprobs[:, 1:]
        logits = learners.reference(batch.tokens)[:, :-1]
        logits = hooked(logits, batch.tokens, batch.ours, learners.hooks)
        reference = ppo.token_log_probabilities(logits, written, mask)
        divergence = ppo.kl_penalty(old, reference, mask)
        if learners.critic is None:
            seen, values = batch.tokens, torch.zeros_like(old)
            advantages = _compared(batch, settings, mask)
            returns = values
        else:
            seen = learners.critic.seen(batch.tokens)
            values = learners.critic(seen)[:, :-1]
            price = 0.0 if settings.penalised else settings.kl
            rewards = place_reward(batch.reward, mask, price * divergence)
            discounts = turn_discounts(mask, turn, settings.gamma)
            advantages, returns = masked_gae(rewards, values, mask, discounts, settings.lam)
            advantages = ppo.whiten(advantages, mask)
        parts = (written, mask, old, reference, divergence, values, advantages, returns)
        return cls(batch, seen, *parts)

    def take(self, rows: Tensor) -> "_JudgedEpisodes":
        batch, *parts = vars(self).values()
        return _JudgedEpisodes(batch.take(rows), *(part[rows] for part in parts))


def _compared(batch: EpisodeBatch, settings: Settings, mask: Tensor) -> Tensor:
    if settings.advantage == "given":
        return batch.given[:, 1:] * mask
    if settings.advantage == "shrunk":
        return over_tokens(shrunk_advantage(batch.reward, batch.group, batch.prior), mask)
    return over_tokens(group_advantage(batch.reward, batch.group), mask)


def _descend(loss: Tensor, optimizer: torch.optim.Optimizer, largest_norm: float) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], largest_norm)
    optimizer.step()

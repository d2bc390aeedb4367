"""Episodes of a tiny network, and one update on them, done slowly: one by one, token by token."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Linear

from farthing_lab.lm.make import Size, network
from farthing_lab.lm.masked_ppo import Settings, UpdateFigures
from farthing_lab.lm.symbols import SYMBOLS
from farthing_lab.models.generation import generate
from farthing_lab.models.generation_rows import GenerationRow

torch.set_num_threads(1)

Parts = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[float]]
"""The prompt's ids; the response's ids, mask and log-probabilities."""
REWARD = np.array([1.0, 0.0, 0.5, 1.0, 0.0])
GROUP = [0, 0, 1, 1, 1]
WIDTH = 16
OTHER = 7
"""Seed of a reference that the policy is already away from."""


def tiny(seed: int = 1) -> Any:
    """Return a network whose probabilities are not even."""
    net = network(Size(1, WIDTH), seed)
    with torch.no_grad():
        for p in net.parameters():
            p.mul_(2.0)
    return net


def played(net: Any) -> list[Parts]:
    """Play episodes of two turns with a reply between them, of different lengths."""
    rng = np.random.default_rng(0)
    episodes: list[Parts] = []
    for row in range(len(REWARD)):
        prompt = rng.integers(2, len(SYMBOLS), size=3 + 2 * (row % 3)).tolist()
        reply = rng.integers(2, len(SYMBOLS), size=1 + row).tolist()
        [first] = generate(net, [GenerationRow(prompt, 1 + row % 4, 1.0, seed=row)])
        [second] = generate(
            net, [GenerationRow([*prompt, *first.ids, *reply], 2, 1.0, seed=row + 50)]
        )
        mask = [*[1] * len(first.ids), *[0] * len(reply), *[1] * len(second.ids)]
        known = [*first.logprobs, *[0.0] * len(reply), *second.logprobs]
        response = [*first.ids, *reply, *second.ids]
        episodes.append((prompt, response, mask, known))
    return episodes


@dataclass
class _Slow:
    """One episode; of its n own tokens alone."""

    parts: Parts
    reward: float

    def __post_init__(self) -> None:
        prompt, response, mask, known = self.parts
        self.whole = torch.tensor([[*prompt, *response]])
        self.places = [len(prompt) + at for at, ours in enumerate(mask) if ours]
        self.old = [k for k, ours in zip(known, mask, strict=True) if ours]

    def logs(self, net: Any) -> tuple[Tensor, Tensor]:
        """Return the logarithms [n, V] that its tokens were drawn from, and their own, [n]."""
        rows = net(self.whole).logits[0, [place - 1 for place in self.places]].log_softmax(-1)
        return rows, rows[range(len(self.places)), self.whole[0, self.places]]

    def kl(self, reference: Any) -> list[float]:
        """Return log pi - log pi_ref of each token."""
        return [a - b for a, b in zip(self.old, self.logs(reference)[1].tolist(), strict=True)]

    def gae(
        self, values: list[float], kl: list[float], settings: Settings, turn: float
    ) -> list[float]:
        """Return the advantages, by the textbook."""
        price = settings.kl if settings.kl_in == "reward" else 0.0
        earned = [-price * one for one in kl]
        earned[-1] += self.reward
        gain, after, made, later = 0.0, 0.0, [], self.places[-1] + 1
        backwards = zip(*(reversed(x) for x in (earned, values, self.places)), strict=True)
        for reward, value, place in backwards:
            gamma = settings.gamma * (turn if later - place > 1 else 1.0)
            delta = reward + gamma * after - value
            gain, after, later = delta + gamma * settings.lam * gain, value, place
            made.append(gain)
        return made[::-1]

    def policy(
        self, net: Any, reference: Any, advantages: Sequence[float], settings: Settings
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return each token's clipped loss, its entropy, and k3 of its divergence."""
        rows, new = self.logs(net)
        far = self.logs(reference)[1].detach() - new
        found = []
        for t, advantage in enumerate(advantages):
            ratio = (new[t] - self.old[t]).exp()
            cut = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            loss = -torch.minimum(ratio * advantage, cut * advantage)
            found.append((loss, -(rows[t].exp() * rows[t]).sum(), far[t].exp() - 1 - far[t]))
        return found


class _Judge:
    """A critic: a copy of the trunk, and a head of zeros."""

    def __init__(self, net: Any) -> None:
        self.trunk, self.head = deepcopy(net.model), Linear(WIDTH, 1)
        torch.nn.init.zeros_(self.head.weight)
        torch.nn.init.zeros_(self.head.bias)

    def values(self, one: _Slow) -> Tensor:
        """Return [n] the value before each own token."""
        seen = self.trunk(one.whole).last_hidden_state[0, [place - 1 for place in one.places]]
        values: Tensor = self.head(seen)[:, 0]
        return values

    def gradients(self) -> dict[str, Tensor]:
        """Return what its parameters were given."""
        of_trunk = _gradients("critic.trunk", self.trunk)
        return of_trunk | _gradients("critic.head", self.head)


def by_hand(settings: Settings, turn: float) -> tuple[dict[str, Tensor], UpdateFigures]:
    """Return the gradients of an update in one part, cut to the largest norm, and its figures."""
    net = tiny()
    reference, judge = tiny(OTHER), _Judge(net)
    slow = [_Slow(p, r) for p, r in zip(played(net), REWARD.tolist(), strict=True)]
    kls = [one.kl(reference) for one in slow]
    raw: list[list[float]]
    if settings.advantage == "group":
        raw, advantages, error = [], _by_group(slow), torch.zeros(())
    elif settings.advantage == "shrunk":
        raw, advantages, error = [], _shrunk(slow), torch.zeros(())
    else:
        before = [judge.values(one).tolist() for one in slow]
        raw = [one.gae(v, k, settings, turn) for one, v, k in zip(slow, before, kls, strict=True)]
        advantages = _whitened(raw)
        error = _error(judge, slow, before, raw)
    tokens = [
        token
        for one, worth in zip(slow, advantages, strict=True)
        for token in one.policy(net, reference, worth, settings)
    ]
    loss, entropy, k3 = (torch.stack(column).mean() for column in zip(*tokens, strict=True))
    whole = loss - settings.entropy * entropy
    in_loss = settings.advantage != "gae" or settings.kl_in == "loss"
    _backward(whole + settings.kl * k3 if in_loss else whole)
    gradients = _cut(_gradients("policy", net), settings.largest_norm)
    if settings.advantage == "gae":
        _backward(error)
        gradients |= _cut(judge.gradients(), settings.largest_norm)
    kl = float(np.mean([k for some in kls for k in some]))
    return gradients, UpdateFigures(kl, entropy.item(), 0.0, 0.0, loss.item(), error.item())


def _by_group(slow: Sequence[_Slow]) -> list[list[float]]:
    made = []
    for number, one in enumerate(slow):
        beside = REWARD[[at for at, group in enumerate(GROUP) if group == GROUP[number]]]
        worth = (one.reward - beside.mean()) / (beside.std(ddof=1) + 1e-6)
        made.append([float(worth)] * len(one.places))
    return made


def _shrunk(slow: Sequence[_Slow]) -> list[list[float]]:
    """Return how far each is above its group's mean, drawn towards an expectation of 0."""
    groups = {g: REWARD[[at for at, one in enumerate(GROUP) if one == g]] for g in GROUP}
    within = sum(((r - r.mean()) ** 2).sum() for r in groups.values())
    within /= sum(len(r) - 1 for r in groups.values())
    beyond = np.mean([r.mean() ** 2 - within / len(r) for r in groups.values()])
    ratio = max(0.0, beyond) / within
    above = [
        one.reward - ratio / (ratio + 1 / len(groups[g])) * groups[g].mean()
        for one, g in zip(slow, GROUP, strict=True)
    ]
    scale = np.sqrt(np.mean(np.square(above))) + 1e-6
    return [[a / scale] * len(one.places) for a, one in zip(above, slow, strict=True)]


def _whitened(raw: Sequence[Sequence[float]]) -> list[list[float]]:
    flat = np.array([a for some in raw for a in some])
    return [((np.array(some) - flat.mean()) / flat.std()).tolist() for some in raw]


def _error(
    judge: _Judge,
    slow: Sequence[_Slow],
    before: Sequence[Sequence[float]],
    raw: Sequence[Sequence[float]],
) -> Tensor:
    errors = []
    for one, values, advantages in zip(slow, before, raw, strict=True):
        now = judge.values(one)
        for t, (value, advantage) in enumerate(zip(values, advantages, strict=True)):
            errors.append(0.5 * (now[t] - (value + advantage)) ** 2)
    return torch.stack(errors).mean()


def _backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


def _gradients(name: str, module: Any) -> dict[str, Tensor]:
    return {
        f"{name}.{inner}": torch.zeros_like(p) if p.grad is None else p.grad
        for inner, p in module.named_parameters()
    }


def _cut(gradients: dict[str, Tensor], largest: float) -> dict[str, Tensor]:
    norm = float(sum((g**2).sum() for g in gradients.values())) ** 0.5
    return {name: g * min(1.0, largest / norm) for name, g in gradients.items()}

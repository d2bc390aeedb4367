"""Batched generation: token ids in; drawn token ids and their log-probabilities out.

One loop for every causal language model of the transformers library that has a key-value cache.
Models that answer prompts (`local.py`) and learners that sample episodes use this one.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from farthing.errors import InputError
from farthing_lab.models.generation_rows import Generated, GenerationRow, Reason


@dataclass(frozen=True)
class Context:
    """What a token is chosen after."""

    ids: Sequence[int]
    """The prompt, and what was taken since."""
    begun: int
    """How many of them are the prompt."""


Hook = Callable[[Tensor, Sequence[Context]], Tensor]
"""Changes logits before a token is chosen: `(logits [B, V], contexts [B]) -> logits [B, V]`.

It has a context for each of the B rows that are still under way, leaves what it is given as it is,
and forbids a token by -inf. What it does to a row depends on that row's logits and context alone:
training applies it again, to many places of an episode at once, and takes gradients through it.
"""


def without(token: int) -> Hook:
    """Return a hook that forbids a token everywhere.

    >>> without(1)(torch.zeros(1, 3), [Context([7], 1)])
    tensor([[0., -inf, 0.]])
    """

    def forbid(logits: Tensor, _: Sequence[Context]) -> Tensor:
        return logits.index_fill(1, torch.tensor([token], device=logits.device), -torch.inf)

    return forbid


def generate(
    network: Any, rows: Sequence[GenerationRow], hooks: Sequence[Hook] = ()
) -> list[Generated]:
    """Continue all rows together, and return what came of each, in their order.

    A row's result does not depend on the others but for rounding: each has a generator of its own,
    and spends one number of it per token. Rows that have ended take no more time.

    Args:
        network: a causal language model of the transformers library, alone or in a PEFT adapter;
            it draws in the mode that it is in, so call `eval()` first where it has dropout.
        rows: what to continue.
        hooks: applied to the logits one after another.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> small = {"hidden_size": 8, "intermediate_size": 8, "num_attention_heads": 1}
    >>> network = LlamaForCausalLM(LlamaConfig(vocab_size=9, num_hidden_layers=1, **small))
    >>> only_4 = torch.full((9,), -torch.inf).index_fill(0, torch.tensor([4]), 0.0)
    >>> row = GenerationRow([1, 2], max_tokens=3)
    >>> [done] = generate(network, [row], [lambda logits, _: logits + only_4])
    >>> done.ids, done.reason, len(done.logprobs)
    ((4, 4, 4), 'length', 3)
    """
    done = dict(as_they_end(network, rows, hooks))
    return [done[number] for number in range(len(rows))]


def as_they_end(
    network: Any, rows: Sequence[GenerationRow], hooks: Sequence[Hook] = ()
) -> Iterator[tuple[int, Generated]]:
    """Do the same, and yield each row's number and result when it ends."""
    batch = _GenerationBatch(network, rows)
    while batch.under_way:
        yield from batch.advance(hooks)


class _RowUnderWay:
    def __init__(self, number: int, row: GenerationRow) -> None:
        self.number, self.row = number, row
        seed = row.seed if row.seed is not None else int(torch.randint(2**62, ()))
        # On the processor wherever the network is: a seed draws the same on every machine.
        self.generator = torch.Generator().manual_seed(seed % 2**63)
        self.ids = list(row.ids)
        self.logprobs: list[float] = []
        self.top: list[tuple[tuple[int, float], ...]] = []

    def reason(self) -> Reason | None:
        """Return why it ends here; None where it goes on."""
        return self.row.reason(self.ids[len(self.row.ids) :])

    def generated(self, reason: Reason) -> Generated:
        ids = tuple(self.ids[len(self.row.ids) :])
        return Generated(ids, tuple(self.logprobs), tuple(self.top), reason)


class _GenerationBatch:
    """The rows under way, padded on the left, and the keys and values of what was read."""

    def __init__(self, network: Any, rows: Sequence[GenerationRow]) -> None:
        self.under_way = [_RowUnderWay(number, row) for number, row in enumerate(rows)]
        self._network = network
        self._keeps_last = _keeps_last(network)
        self._cache: Any = None
        self._device = next(network.parameters()).device
        longest = max((len(row.ids) for row in rows), default=0)
        self._inputs = self._tensor([[0] * (longest - len(r.ids)) + list(r.ids) for r in rows])
        self._mask = self._tensor(
            [[i >= longest - len(r.ids) for i in range(longest)] for r in rows]
        )

    # The gradient is off within a step only: what comes between two steps is the caller's.
    @torch.no_grad()
    def advance(self, hooks: Sequence[Hook]) -> list[tuple[int, Generated]]:
        """Take one token in every row; return those that end with it."""
        logits = self._read()
        contexts = [Context(one.ids, len(one.row.ids)) for one in self.under_way] if hooks else []
        for hook in hooks:
            logits = hook(logits, contexts)
        self._record(logits, taken := self._choose(logits))
        ended, going = [], []
        for place, one in enumerate(self.under_way):
            if reason := one.reason():
                ended.append((one.number, one.generated(reason)))
            else:
                going.append(place)
        if ended:
            self.under_way = [self.under_way[place] for place in going]
            self._mask, taken = self._mask[going], taken[going]
            for layer in self._cache.layers if going else ():
                _select(layer, self._tensor(going))
        self._inputs = taken[:, None]
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(going), 1)], dim=1)
        return ended

    def _read(self) -> Tensor:
        """Return the logits [B, V] of the next token of each row."""
        positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
        done = self._network(
            input_ids=self._inputs,
            attention_mask=self._mask,
            position_ids=positions[:, -self._inputs.shape[1] :],
            past_key_values=self._cache,
            use_cache=True,
            **self._keeps_last,
        )
        self._cache = done.past_key_values
        logits: Tensor = done.logits[:, -1].float()
        return logits

    def _choose(self, logits: Tensor) -> Tensor:
        """Return the token [B] that each row takes."""
        taken = logits.argmax(dim=1)
        if not logits.gather(1, taken[:, None]).isfinite().all():
            raise InputError(
                "no token is left to take: a hook forbids all, or weights are not numbers"
            )
        drawn = [place for place, one in enumerate(self.under_way) if one.row.temperature > 0]
        if drawn:
            taken[drawn] = _draw(logits[drawn], [self.under_way[place] for place in drawn])
        return taken

    def _record(self, logits: Tensor, taken: Tensor) -> None:
        logprobs = logits.log_softmax(dim=1)
        found = logprobs.gather(1, taken[:, None])[:, 0].tolist()
        most = min(max(one.row.top_logprobs for one in self.under_way), logits.shape[1])
        top = logprobs.topk(most, dim=1)
        best = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        for one, token, logprob, (indices, values) in zip(
            self.under_way, taken.tolist(), found, best, strict=True
        ):
            one.ids.append(token)
            one.logprobs.append(logprob)
            one.top.append(tuple(zip(indices, values, strict=True))[: one.row.top_logprobs])

    def _tensor(self, values: Sequence[Any]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._device)


def _select(layer: Any, places: Tensor) -> None:
    """Keep some rows of what a layer remembers: keys and values, or what a convolution saw last."""
    if hasattr(layer, "batch_select_indices"):
        layer.batch_select_indices(places)
        return
    for states in (layer.conv_states, layer.recurrent_states):
        for name, state in states.items():
            if state is not None:
                states[name] = state[places]


def _draw(logits: Tensor, rows: Sequence[_RowUnderWay]) -> Tensor:
    """Draw a token [B] of each row by inversion: the first up to which p adds up to more than u."""
    temperature = logits.new_tensor([one.row.temperature for one in rows])[:, None]
    p = (logits / temperature).softmax(dim=1).double()
    top_p = p.new_tensor([one.row.top_p for one in rows])[:, None]
    if bool((top_p < 1).any()):
        ranked, order = p.sort(dim=1, descending=True)
        # A token stays where those before it do not have top_p yet: the likeliest one always.
        ranked[ranked.cumsum(dim=1) - ranked >= top_p.clamp(min=1e-12)] = 0
        p = torch.zeros_like(p).scatter(1, order, ranked)
    below = p.cumsum(dim=1)
    u = below.new_tensor([float(torch.rand((), generator=one.generator)) for one in rows])[:, None]
    return torch.searchsorted(below, u * below[:, -1:], right=True)[:, 0]


def _keeps_last(network: Any) -> dict[str, int]:
    """Have logits made of the last place alone, where the network can: a prompt has many."""
    base = network.get_base_model() if hasattr(network, "get_base_model") else network
    known = inspect.signature(base.forward).parameters
    return {"logits_to_keep": 1} if "logits_to_keep" in known else {}

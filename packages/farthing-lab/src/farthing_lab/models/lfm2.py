"""LFM2 networks on numpy: what the package's own language models need, and no PyTorch.

The architecture is that of the transformers library's `Lfm2ForCausalLM`, whose folders are read:
short convolutions and attention take turns, each followed by a gated feed-forward layer. A test
holds the numbers to that library's.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farthing.errors import InputError
from farthing_lab.models.generation_rows import Generated, GenerationRow, Reason

Floats = NDArray[np.float32]
HIDDEN = np.float32(-1e30)
"""Added to the attention that a place may not pay."""


@dataclass
class LayerMemory:
    """What a layer remembers of the text so far: keys and values, or what a convolution saw."""

    first: Floats
    """Keys [B, heads, S, d], or the last inputs [B, kernel - 1, width]."""
    second: Floats | None = None
    """Values [B, heads, S, d]."""

    def keep(self, rows: Sequence[int]) -> None:
        self.first = self.first[rows]
        self.second = None if self.second is None else self.second[rows]


@dataclass(frozen=True)
class Lfm2Network:
    """Weights by their names, and the shape that they are of."""

    weights: Mapping[str, Floats]
    layers: Sequence[str]
    """`conv` or `full_attention`, from the first."""
    heads: int
    rope_theta: float
    eps: float
    context: int
    """Most tokens of prompt and answer together."""

    @classmethod
    def read(cls, folder: Path) -> "Lfm2Network":
        """Read a folder as the transformers library writes it.

        Numpy's products keep to one thread from then on, in the whole process: those of such a
        network are small, and threads would only wait for each other.

        Raises:
            OSError: a file is missing.
            ValueError: the weights are damaged.
        """
        from safetensors import SafetensorError  # noqa: PLC0415 - only where weights are read
        from safetensors.numpy import load_file  # noqa: PLC0415
        from threadpoolctl import threadpool_limits  # noqa: PLC0415

        threadpool_limits(limits=1, user_api="blas")
        config = json.loads(folder.joinpath("config.json").read_text(encoding="utf-8"))
        try:
            weights = load_file(folder / "model.safetensors")
        except SafetensorError as error:
            raise ValueError(f"the weights are damaged ({error}); copy them anew") from None
        return cls(
            weights,
            tuple(config["layer_types"]),
            config["num_attention_heads"],
            config["rope_parameters"]["rope_theta"],
            config["norm_eps"],
            config["max_position_embeddings"],
        )

    def logits(
        self, ids: NDArray[np.int64], seen: NDArray[np.bool_], memory: list[LayerMemory]
    ) -> Floats:
        """Return the logits [B, V] of what comes after some tokens.

        Args:
            ids: new tokens [B, T]: the whole prompts, padded on the left, or one more token each.
            seen: which places of the text [B, S], S >= T, are tokens and no padding.
            memory: of each layer, what it remembers; it is filled and brought up to date.
        """
        new = ids.shape[1]
        positions = np.maximum(seen.cumsum(axis=1) - 1, 0)[:, -new:]
        turn = self._turn(positions)
        places = seen.shape[1]
        up_to = np.arange(places) <= np.arange(places - new, places)[:, None]
        hidden = np.where(seen[:, None] & up_to, np.float32(0), HIDDEN)[:, None]
        present = seen[:, -new:, None]
        begun = not memory
        x = self.weights["model.embed_tokens.weight"][ids]
        for number, kind in enumerate(self.layers):
            at = f"model.layers.{number}."
            normed = self._norm(x, f"{at}operator_norm")
            before = None if begun else memory[number]
            if kind == "conv":
                mixed, after = self._convolution(normed * present, at, before)
            else:
                mixed, after = self._attention(normed, at, turn, hidden, before)
            if begun:
                memory.append(after)
            else:
                memory[number] = after
            x = x + mixed
            normed, own = self._norm(x, f"{at}ffn_norm"), f"{at}feed_forward."
            gate = self._linear(normed, f"{own}w1")
            gate = gate / (1 + np.exp(-gate))
            x = x + self._linear(gate * self._linear(normed, f"{own}w3"), f"{own}w2")
        last = self._norm(x[:, -1], "model.embedding_norm")
        return last @ self.weights["model.embed_tokens.weight"].T

    def _turn(self, positions: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return cosine and sine [B, 1, T, d] by which queries and keys are turned."""
        size = self.weights["model.embed_tokens.weight"].shape[1] // self.heads
        frequency = 1.0 / self.rope_theta ** (np.arange(0, size, 2, dtype=np.float32) / size)
        angle = positions[:, None, :, None].astype(np.float32) * frequency.astype(np.float32)
        angle = np.concatenate([angle, angle], axis=-1)
        return np.cos(angle), np.sin(angle)

    def _convolution(
        self, x: Floats, at: str, before: LayerMemory | None
    ) -> tuple[Floats, LayerMemory]:
        gate_in, gate_out, x = np.split(self._linear(x, f"{at}conv.in_proj"), 3, axis=-1)
        kernel = self.weights[f"{at}conv.conv.weight"][:, 0].T  # [kernel, width]
        x = gate_in * x
        if before is None:
            past = np.zeros((len(x), len(kernel) - 1, x.shape[2]), np.float32)
        else:
            past = before.first
        seen, new = np.concatenate([past, x], axis=1), x.shape[1]
        mixed = sum(seen[:, k : k + new] * weight for k, weight in enumerate(kernel))
        done = self._linear(gate_out * mixed, f"{at}conv.out_proj")
        return done, LayerMemory(seen[:, new:])

    def _attention(
        self,
        x: Floats,
        at: str,
        turn: tuple[Floats, Floats],
        hidden: Floats,
        before: LayerMemory | None,
    ) -> tuple[Floats, LayerMemory]:
        own = f"{at}self_attn."
        query = _turned(self._norm(self._by_head(x, f"{own}q_proj"), f"{own}q_layernorm"), turn)
        keys = _turned(self._norm(self._by_head(x, f"{own}k_proj"), f"{own}k_layernorm"), turn)
        values = self._by_head(x, f"{own}v_proj")
        if before is not None and before.second is not None:
            keys = np.concatenate([before.first, keys], axis=2)
            values = np.concatenate([before.second, values], axis=2)
        paid = query @ keys.swapaxes(2, 3) * np.float32(query.shape[3] ** -0.5) + hidden
        paid = np.exp(paid - paid.max(axis=3, keepdims=True))
        paid /= paid.sum(axis=3, keepdims=True)
        found = (paid @ values).swapaxes(1, 2).reshape(x.shape)
        return self._linear(found, f"{own}out_proj"), LayerMemory(keys, values)

    def _by_head(self, x: Floats, name: str) -> Floats:
        """Return a projection, [B, heads, T, d]."""
        rows, places, _ = x.shape
        return self._linear(x, name).reshape(rows, places, self.heads, -1).swapaxes(1, 2)

    def _linear(self, x: Floats, name: str) -> Floats:
        return x @ self.weights[f"{name}.weight"].T

    def _norm(self, x: Floats, name: str) -> Floats:
        size = np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(self.eps))
        normed: Floats = x / size * self.weights[f"{name}.weight"]
        return normed


def is_lfm2(folder: Path) -> bool:
    """Return whether a folder's weights are of a network that this file runs."""
    try:
        config: Any = json.loads(folder.joinpath("config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    plain = {
        "model_type": "lfm2",
        "dtype": "float32",
        "block_auto_adjust_ff_dim": False,
        "conv_bias": False,
        "tie_word_embeddings": True,
        "num_key_value_heads": config.get("num_attention_heads"),
    }
    rope = config.get("rope_parameters") or {}
    return {k: config.get(k) for k in plain} == plain and rope.get("rope_type") == "default"


def as_they_end(
    network: Lfm2Network, rows: Sequence[GenerationRow]
) -> Iterator[tuple[int, Generated]]:
    """Continue all rows together, and yield each row's number and result when it ends.

    A row's result does not depend on the others but for rounding: each has a generator of its own.
    """
    going = [_RowUnderWay(number, row) for number, row in enumerate(rows)]
    longest = max((len(row.ids) for row in rows), default=0)
    ids = np.array([[0] * (longest - len(r.ids)) + list(r.ids) for r in rows], np.int64)
    seen = np.array([[k >= longest - len(r.ids) for k in range(longest)] for r in rows])
    memory: list[LayerMemory] = []
    while going:
        logits = network.logits(ids, seen, memory)
        if not np.isfinite(logits).all():
            raise InputError("the network's weights are not numbers; copy them anew")
        logprobs = logits - logits.max(axis=1, keepdims=True)
        logprobs -= np.log(np.exp(logprobs).sum(axis=1, keepdims=True))
        likeliest = logprobs.argmax(axis=1).tolist()
        ends = [one.take(*each) for one, *each in zip(going, likeliest, logprobs, strict=True)]
        left = [place for place, reason in enumerate(ends) if reason is None]
        for one, reason in zip(going, ends, strict=True):
            if reason is not None:
                yield one.number, one.generated(reason)
        if len(left) < len(going):
            for layer in memory:
                layer.keep(left)
            going, seen = [going[place] for place in left], seen[left]
        ids = np.array([[one.ids[-1]] for one in going], np.int64)
        seen = np.concatenate([seen, np.ones((len(seen), 1), bool)], axis=1)


@dataclass
class _RowUnderWay:
    number: int
    row: GenerationRow
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    top: list[tuple[tuple[int, float], ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(self.row.seed)

    def take(self, likeliest: int, logprobs: Floats) -> Reason | None:
        """Take a token; return why the row ends with it."""
        token = self._drawn(logprobs) if self.row.temperature > 0 else likeliest
        self.ids.append(token)
        self.logprobs.append(float(logprobs[token]))
        top: tuple[tuple[int, float], ...] = ()
        if self.row.top_logprobs:
            best = np.argsort(-logprobs, kind="stable")[: self.row.top_logprobs]
            top = tuple((int(k), float(logprobs[k])) for k in best)
        self.top.append(top)
        return self.row.reason(self.ids)

    def _drawn(self, logprobs: Floats) -> int:
        scaled = logprobs.astype(np.float64) / self.row.temperature
        p = np.exp(scaled - scaled.max())
        p /= p.sum()
        order = np.argsort(-p, kind="stable")
        before = p[order].cumsum() - p[order]
        p[order[before >= max(self.row.top_p, 1e-12)]] = 0
        below = p.cumsum()
        return int(np.searchsorted(below, self.generator.random() * below[-1], side="right"))

    def generated(self, reason: Reason) -> Generated:
        return Generated(tuple(self.ids), tuple(self.logprobs), tuple(self.top), reason)


def _turned(x: Floats, turn: tuple[Floats, Floats]) -> Floats:
    cosine, sine = turn
    one, other = np.split(x, 2, axis=-1)
    across: Floats = np.concatenate([-other, one], axis=-1)
    turned: Floats = x * cosine + across * sine
    return turned

"""The policy network of CPO and CCPO, trained with torch and run with numpy, and their cards.

CPO is constrained policy optimisation (Achiam and others 2017); the paper of CCPO (Si and others
2025), conformal constrained policy optimisation, holds itself against it in three forms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from farthing.features.rounds import FeatureSet
from farthing.methods.base import Dataset, Method, Variant, load
from farthing.money import usd_from_nano
from farthing.process.base import InRounds
from farthing.traces.arrays import FloatArray, TraceArrays

BLOCK = 4096
"""Questions whose features are computed at a time, so that memory does not grow with n."""
PASS = 128
"""Rounds that go through the layers at a time, always so many.

Where fewer are left, zeros fill up. How a product of matrices rounds depends on their sizes: with
one size only, and in double precision, a question alone scores to the bit what it scores among
thousands. In single precision OpenBLAS rounds rows by their places on some processors.
"""


@dataclass(frozen=True)
class NetworkPolicy(InRounds):
    """A multilayer perceptron with tanh units and a softmax over the actions."""

    features: FeatureSet
    """What it sees of a round."""
    weights: Sequence[FloatArray]
    """One [inputs, outputs] matrix a layer."""
    biases: Sequence[FloatArray]
    """One [outputs] vector a layer."""
    stochastic: bool = True

    def scores(self, traces: TraceArrays) -> FloatArray:
        """Return the probability of each action, [n, T, L + 1]."""
        found = np.empty((*traces.answer.shape[:2], traces.n_roles + 1))
        for start in range(0, len(traces), BLOCK):
            rows = slice(start, start + BLOCK)
            seen = self.features.transform(traces.rows(rows))
            logits = self._logits(seen.reshape(-1, seen.shape[2]))
            found[rows] = logits.reshape(found[rows].shape)
            found[rows, -1, -1] = -np.inf
            found[rows] = softmax(found[rows])
        return found

    def _logits(self, rows: FloatArray) -> FloatArray:
        """Map features, [R, F], to what softmax turns into probabilities, [R, L + 1]."""
        filled = -(-len(rows) // PASS) * PASS
        seen = np.zeros((filled, rows.shape[1]))
        seen[: len(rows)] = rows
        logits = np.empty((filled, len(self.biases[-1])))
        for start in range(0, filled, PASS):
            hidden = seen[start : start + PASS]
            for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
                hidden = hidden @ weight
                hidden += bias
                np.tanh(hidden, out=hidden)
            np.matmul(hidden, self.weights[-1], out=logits[start : start + PASS])
        logits += self.biases[-1]
        return logits[: len(rows)]

    def to_state(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        arrays = {f"weight.{i}": w for i, w in enumerate(self.weights)}
        arrays |= {f"bias.{i}": b for i, b in enumerate(self.biases)}
        return arrays, {"features": self.features.to_json(), "layers": len(self.weights)}

    @classmethod
    def from_state(cls, arrays: Mapping[str, FloatArray], settings: Mapping[str, Any]) -> Self:
        layers = range(int(settings["layers"]))
        return cls(
            FeatureSet.from_json(settings["features"]),
            [arrays[f"weight.{i}"] for i in layers],
            [arrays[f"bias.{i}"] for i in layers],
        )


def softmax(logits: FloatArray) -> FloatArray:
    """Return exp(logits) normalised over the last axis.

    >>> softmax(np.array([0.0, -np.inf, 0.0]))
    array([0.5, 0. , 0.5])
    """
    actions = np.ascontiguousarray(np.moveaxis(logits, -1, 0))  # few: long rows are quicker
    weight = np.exp(actions - actions.max(axis=0))
    weight /= weight.sum(axis=0)
    return np.ascontiguousarray(np.moveaxis(weight, 0, -1))


_NETWORK = partial(Method, policy=NetworkPolicy, action_spaces=("rounds", "cascade"))
_CPO = partial(_NETWORK, paper="1705.10528", learner="farthing_lab.methods.ccpo.learner:CPO")
_CCPO = partial(_NETWORK, paper="2511.11828")

CPO = _CPO(
    name="cpo",
    label="CPO",
    meaning="A network trained to cost least at the coverage asked for, acting by lot",
    calibration="none",
    place=40,
)
CPO_BATCH = _CPO(
    name="cpo-batch",
    label="CPO batch",
    meaning="The same network with an exact threshold",
    place=41,
)
CPO_ONLINE = _CPO(
    name="cpo-online",
    label="CPO online",
    meaning="The same network with a threshold tracked over its training episodes",
    calibration="online",
    empty="allow",  # its online pass counts sets that may be empty
    place=42,
)

SET_SIZE_PRICES = {
    "hotpotqa-llama2-7b": ("1e-4", "2e-4"),
    "hotpotqa-llama3.2-3b": ("1e-4",),
    "mmlu-llama2-7b": ("2e-4",),
    "mmlu-llama3.2-3b": ("1e-4", "2e-4"),
}
"""The prices of an answer, lambda in USD, that the paper's tables have for each pair of agents."""

CCPO = _CCPO(
    name="ccpo",
    label="CCPO (λ=0)",
    meaning="A network and its threshold learned together, with the exact constraint and cost",
    learner="farthing_lab.methods.ccpo.learner:CCPO",
    place=50,
)
CCPO_LAMBDA = _CCPO(
    name="ccpo-lambda",
    label="CCPO (λ=0.86 rounds)",
    meaning="The same with a price on each answer in the set",
    learner="farthing_lab.methods.ccpo.learner:CCPO_LAMBDA",
    place=51,
)
CCPO_PUBLISHED = _CCPO(
    name="ccpo-published",
    label="CCPO as published",
    meaning="The paper's own: leaf count for the constraint, sampled cost, sets that may be empty",
    learner="farthing_lab.methods.ccpo.learner:CCPO_PUBLISHED",
    empty="allow",
    place=52,
)


def _as_the_paper_tried(dataset: Dataset) -> Sequence[Variant]:
    """Return the paper's own with its prices of an answer, in dollars; on its presets alone."""
    if dataset.preset is None:
        return []
    round_usd = usd_from_nano(float(dataset.traces.round_cost_nano.mean()))
    published = load("farthing_lab.methods.ccpo.learner:published")
    return [
        Variant(
            f"ccpo-published-lambda-{price}",
            f"CCPO as published (λ={price} USD)",
            published(float(price) / round_usd),
        )
        for price in SET_SIZE_PRICES.get(dataset.preset, ())
    ]


CCPO_PUBLISHED_LAMBDA = _CCPO(
    name="ccpo-published-lambda",
    label="CCPO as published (λ in USD)",
    meaning="The paper's own with the prices on each answer that the paper tried",
    learner="farthing_lab.methods.ccpo.learner:published",
    empty="allow",
    variants=_as_the_paper_tried,
    place=53,
)

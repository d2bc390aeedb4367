"""A policy that knows how sure the guide is, and questions to promise something about."""

from dataclasses import dataclass

import numpy as np

from farthing.bundle.base import Bundle
from farthing.process.base import InRounds, Policy
from farthing.recommendation.played import Questions
from farthing.traces.arrays import FloatArray, TraceArrays
from farthing.traces.system import origin_of
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

CONFIG = preset("hotpotqa-llama2-7b").config


@dataclass(frozen=True)
class Sure(InRounds):
    """Scores answers by how sure the guide is, and going on by how unsure: it can abstain."""

    stochastic: bool = False

    def scores(self, traces: TraceArrays) -> FloatArray:
        sure = 1 - np.nan_to_num(traces.signals["uncertainty"][:, :, 1].astype(np.float64), nan=0.5)
        scores = np.zeros((len(traces), traces.horizon, traces.n_roles + 1))
        scores[:, :, 1] = np.clip(sure, 0.001, 1)
        scores[:, :-1, -1] = 1 - np.clip(sure, 0.001, 1)[:, :-1]
        return scores


def drawn(n: int, seed: int) -> Questions:
    traces = generate(CONFIG, n, np.random.default_rng(seed))
    return Questions(traces, traces)


def unsure(traces: TraceArrays) -> FloatArray:
    """Draw questions by how unsure the guide is in round 1, up to four times as often."""
    return np.exp(2 * traces.signals["uncertainty"][:, 0, 1].astype(np.float64))


def covariate_shifted(traces: TraceArrays, n: int, rng: np.random.Generator) -> TraceArrays:
    chance = unsure(traces)
    return traces.take(rng.choice(len(traces), size=n, p=chance / chance.sum()))


def bundled(policy: Policy, train: Questions) -> Bundle:
    """Return a bundle that promises nothing yet."""
    return Bundle(
        policy=policy,
        kind="sure",
        origin=origin_of(train.played, "f"),
        kappa=None,
        empty="argmax",
        certificate=None,
        features=None,
        farthing_version="0",
    )

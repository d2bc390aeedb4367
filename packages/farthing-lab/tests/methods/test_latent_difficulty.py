"""The hidden difficulty of a conversation, against enumeration of all that it can say."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from farthing.methods.lookahead.latent_difficulty import LEAST, LatentDifficulty
from farthing.process.base import hidden
from farthing.traces.arrays import FloatArray
from farthing_lab.generator.config import GeneratorConfig
from farthing_lab.generator.generate import generate
from farthing_lab.generator.optimum import enumerate_histories, first_seen_next
from farthing_lab.generator.presets import PRESETS, preset

LOG_2 = float(np.log(2))


def known(config: GeneratorConfig) -> LatentDifficulty:
    """Return the model that a generator draws from."""
    bins = config.uncertainty.bins
    return LatentDifficulty(
        share=config.mix,
        base_first=config.per_level("base_first"),
        base_later=config.per_level("base_later"),
        guide=config.per_level("guide"),
        yes_if_right=config.per_level("yes_if_right"),
        yes_if_wrong=config.per_level("yes_if_wrong"),
        edges=np.arange(1, bins) / bins * LOG_2,
        if_right=np.append(config.uncertainty.if_right, 0.0),
        if_wrong=np.append(config.uncertainty.if_wrong, 0.0),
        base_persistence=config.base_persistence,
        guide_persistence=config.guide_persistence,
        wrong_answers=config.wrong_answers,
        signal="uncertainty",
    )


def chance(log_odds: FloatArray) -> FloatArray:
    found: FloatArray = 1.0 / (1.0 + np.exp(-log_odds))
    return found


@pytest.mark.parametrize("name", PRESETS)
def test_the_next_gain_is_that_of_the_enumerated_histories(name: str) -> None:
    """The generator's own histories are enumerated by other code, from its definition alone."""
    config = replace(preset(name).config, rounds=3)
    traces = generate(config, 4_000, np.random.default_rng(0))
    soon = chance(known(config).outlook(traces)[:, :, 0])
    labels, drawn = traces.answer.astype(np.int64), known(config).bins(traces)
    parent = np.zeros(len(traces), dtype=np.int64)
    for t, histories in enumerate(enumerate_histories(config, 2)):
        key = ((parent * 6 + labels[:, t, 0]) * 6 + labels[:, t, 1]) * 3 + drawn[:, t]
        parent = np.searchsorted(histories.key, key)
        exact = first_seen_next(config, histories) / histories.probability
        np.testing.assert_allclose(soon[:, t], np.maximum(exact[parent], LEAST), rtol=1e-9)


def test_the_last_round_leaves_nothing_to_find() -> None:
    config = preset("mmlu-llama2-7b").config
    traces = generate(config, 50, np.random.default_rng(1))
    ever = chance(known(config).outlook(traces)[:, :, 1])
    np.testing.assert_allclose(ever[:, -1], LEAST)
    soon = chance(known(config).outlook(traces)[:, :-1, 0])
    assert (ever[:, :-1] >= soon - 1e-12).all()


@pytest.mark.slow
def test_one_conversation_is_weighed_as_many_are() -> None:
    config = preset("hotpotqa-llama2-7b").config
    model = replace(known(config), wrong_answers=2)  # so that more are given than there are
    traces = generate(config, 300, np.random.default_rng(2))
    traces.answer[:60, :, 0] = np.where(traces.answer[:60, :, 0] == 1, -1, traces.answer[:60, :, 0])
    traces.signals["uncertainty"][60:120, 1] = np.nan
    model = replace(model, if_right=np.array([0.6, 0.2, 0.1, 0.1]), if_wrong=np.full(4, 0.25))
    many = model.outlook(traces)
    for row, t in product(range(len(traces)), range(4)):
        said = np.arange(4)[:, None].repeat(2, axis=1) <= t
        alone = hidden(traces.take(np.array([row])), said)
        np.testing.assert_array_equal(model.outlook(alone)[0, : t + 1], many[row, : t + 1])


def test_its_state_is_all_of_it() -> None:
    model = known(preset("mmlu-llama2-7b").config)
    arrays, settings = model.to_state()
    again = LatentDifficulty.from_state(arrays, settings)
    traces = generate(preset("mmlu-llama2-7b").config, 20, np.random.default_rng(3))
    np.testing.assert_array_equal(again.outlook(traces), model.outlook(traces))

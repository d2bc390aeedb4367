"""Fitting a conversation's hidden difficulty: it climbs, and finds what questions came from."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from farthing.methods.lookahead import fit_latent_difficulty as fitting
from farthing.methods.lookahead.fit_latent_difficulty import fit_latent_difficulty
from farthing.methods.lookahead.latent_difficulty import LatentDifficulty
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

CONFIG = preset("hotpotqa-llama2-7b").config


def log_likelihood(model: LatentDifficulty, traces: TraceArrays) -> float:
    lesson = fitting._Conversations.of(traces, model)
    return float(lesson.weigh(model)[1].sum())


@pytest.mark.slow
def test_every_step_makes_the_recordings_likelier() -> None:
    """The shrinkage by one case is all that may cost a little."""
    traces = generate(CONFIG, 2_000, np.random.default_rng(0))
    model = replace(fitting._start(traces), wrong_answers=20)
    lesson = fitting._Conversations.of(traces, model)
    likely = [log_likelihood(model, traces)]
    for _ in range(30):
        model = fitting._step(model, lesson)
        likely.append(log_likelihood(model, traces))
    assert (np.diff(likely) > -0.05).all()
    assert likely[-1] > likely[0] + 100


@pytest.mark.slow
def test_no_rate_nearby_is_likelier() -> None:
    """At the end, a nudge to any rate, up or down, explains the recordings less well."""
    better = tuple(replace(of, base_later=of.base_first + 0.4) for of in CONFIG.levels)
    traces = generate(replace(CONFIG, levels=better), 3_000, np.random.default_rng(1))
    model = replace(fitting._start(traces), wrong_answers=20)
    model = fitting._improved(model, fitting._Conversations.of(traces, model), 150)
    best = log_likelihood(model, traces)
    for name in ("base_first", "base_later", "guide", "yes_if_right", "yes_if_wrong"):
        for level in range(fitting.LEVELS):
            for nudge in (-0.03, 0.03):
                rate = getattr(model, name).copy()
                rate[level] = np.clip(rate[level] + nudge, 0.001, 0.999)
                assert log_likelihood(replace(model, **{name: rate}), traces) < best, name
    for name in ("base_persistence", "guide_persistence"):
        for nudge in (-0.02, 0.02):
            other = replace(model, **{name: getattr(model, name) + nudge})
            assert log_likelihood(other, traces) < best, name


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wrong"), [("hotpotqa-llama2-7b", 20), ("mmlu-llama2-7b", 3)])
def test_it_finds_what_the_questions_came_from(name: str, wrong: int) -> None:
    config = preset(name).config
    model = fit_latent_difficulty(generate(config, 3_000, np.random.default_rng(2)))
    assert model.wrong_answers == wrong
    assert abs(model.base_persistence - config.base_persistence) < 0.05
    assert abs(model.guide_persistence - config.guide_persistence) < 0.05
    assert abs(model.share @ model.base_first - config.mix @ config.per_level("base_first")) < 0.03


@pytest.mark.slow
def test_rounds_that_were_not_recorded_teach_nothing() -> None:
    full = generate(CONFIG, 400, np.random.default_rng(3))
    cut = replace(
        full,
        answer=full.answer.copy(),
        correct=full.correct.copy(),
        recorded=np.where(np.arange(400) % 2, 2, 4).astype(np.int16),
    )
    junk = cut.correct.copy()
    cut.answer[1::2, 2:], cut.correct[1::2, 2:] = NO_ANSWER, False
    junk[1::2, 2:] = True
    again = fit_latent_difficulty(replace(cut, correct=junk))
    np.testing.assert_array_equal(again.guide, fit_latent_difficulty(cut).guide)


@pytest.mark.slow
def test_conversations_without_a_signal_are_weighed_by_answers_alone() -> None:
    bare = replace(generate(CONFIG, 300, np.random.default_rng(4)), signals={})
    model = fit_latent_difficulty(bare)
    assert model.signal == ""
    assert np.isfinite(model.outlook(bare)).all()


@pytest.mark.slow
def test_a_conversation_may_be_long() -> None:
    """Of 200 rounds the probability is smaller than any number that a computer has."""
    short = generate(replace(CONFIG, rounds=10), 40, np.random.default_rng(5))

    def again(values: NDArray[Any]) -> NDArray[Any]:
        return np.tile(values, (1, 20, 1))

    long = replace(
        short,
        answer=again(short.answer),
        correct=again(short.correct),
        cost_nano=again(short.cost_nano),
        signals={name: again(values) for name, values in short.signals.items()},
        recorded=np.full(len(short), 200, dtype=np.int16),
    )
    assert np.isfinite(fit_latent_difficulty(long).outlook(long)).all()

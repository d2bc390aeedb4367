"""Which settings a learner has, what a user may ask of them, and what is drawn."""

from dataclasses import asdict
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError, UnknownNameError
from farthing.methods.lookahead.learner import LookaheadLearner
from farthing_lab.methods.ccpo.learner import CcpoLearner
from farthing_lab.methods.set_size_penalty import SetSizePenaltyLearner
from farthing_lab.methods.stopping import StoppingLearner
from farthing_lab.studies.settings import (
    Choice,
    Range,
    ValueList,
    read_choice,
    settings_of,
    tried,
    with_settings,
    written,
)


def flat(record: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Flatten nested dictionaries: an independent account of what can be set."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, dict):
            found |= flat(value, f"{above}{name}.")
        elif not isinstance(value, tuple):
            found[f"{above}{name}".removeprefix("config.")] = value
    return found


@pytest.mark.parametrize("learner", [CcpoLearner(), LookaheadLearner(), SetSizePenaltyLearner()])
def test_every_number_and_word_of_a_learner_can_be_set(learner: Any) -> None:
    assert settings_of(learner) == flat(asdict(learner))


def test_a_learner_without_settings_has_none() -> None:
    assert settings_of(StoppingLearner()) == {}


def test_changed_settings_change_nothing_else() -> None:
    learner = SetSizePenaltyLearner()
    changed = {"leaf": 7, "set_size_price": 0.5}
    found = with_settings(learner, changed)
    assert settings_of(found) == settings_of(learner) | changed
    assert learner == SetSizePenaltyLearner()
    assert with_settings(learner, {}) is learner


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("leef=3", "unknown setting 'leef'; did you mean 'leaf'"),
        ("leaf=0", "leaf: '0' is no whole number from 1 to"),
        ("leaf=1.5", "leaf: '1.5' is no whole number"),
        ("leaf=9999999999", "no whole number from 1 to 1,000,000"),
        ("leaf", "leaf: '' is no whole number"),
        ("leaf=1,,2", "leaf: '' is no whole number"),
        ("leaf=20..10", "range 20..10 is empty"),
        ("space=poker", "space: 'poker' is no value of it; choose from rounds, calls"),
    ],
)
def test_a_mistake_is_named(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_choice(LookaheadLearner(), text)


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "1e999", "x"])
def test_no_setting_is_negative_or_without_end(value: str) -> None:
    with pytest.raises(InputError, match="no number from 0 up"):
        read_choice(CcpoLearner(), f"epsilon={value}")


def test_an_unknown_setting_is_a_name_that_nobody_knows() -> None:
    with pytest.raises(UnknownNameError):
        read_choice(StoppingLearner(), "leaf=3")


def test_without_a_draw_the_whole_grid_is_tried() -> None:
    choices: dict[str, Choice] = {"leaf": ValueList((1, 2, 3)), "trees": ValueList((8, 9))}
    found = tried(choices, None, np.random.default_rng(0))
    assert [tuple(one.values()) for one in found] == list(product((1, 2, 3), (8, 9)))
    assert tried(choices, 6, np.random.default_rng(0)) == found
    with pytest.raises(InputError, match="trees: a range has no grid"):
        tried({"trees": Range(1, 9, whole=True)}, None, np.random.default_rng(0))


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 99),
    few=st.integers(1, 5),
    more=st.integers(0, 5),
    low=st.sampled_from([0.0, 0.001, 1.0]),
    whole=st.booleans(),
)
def test_draws_stay_inside_differ_and_go_on_where_fewer_ended(
    seed: int, few: int, more: int, low: float, whole: bool
) -> None:
    edge = float(whole) if whole else low
    choices: dict[str, Choice] = {"a": Range(edge, 50.0, whole), "b": ValueList((1, 2, 3, 4))}
    first = tried(choices, few, np.random.default_rng(seed))
    longer = tried(choices, few + more, np.random.default_rng(seed))
    assert len(longer) == few + more
    assert longer[:few] == first
    assert len({tuple(one.values()) for one in longer}) == len(longer)
    for one in longer:
        assert edge <= float(one["a"]) <= 50.0
        assert one["b"] in {1, 2, 3, 4}
        assert isinstance(one["a"], int if whole else float)


def test_a_range_above_0_is_drawn_evenly_over_its_magnitudes() -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([float(Range(0.001, 0.1, whole=False).draw(rng)) for _ in range(4_000)])
    assert (drawn < 0.01).mean() == pytest.approx(0.5, abs=0.04)


def test_an_exhausted_range_gives_what_there_is() -> None:
    found = tried({"leaf": Range(1, 3, whole=True)}, 10, np.random.default_rng(0))
    assert sorted(int(one["leaf"]) for one in found) == [1, 2, 3]


def test_settings_are_written_as_they_are_read() -> None:
    learner = CcpoLearner()
    for text in ("epsilon=0.02", "cost=sampled", "batch=5"):
        name, choice = read_choice(learner, text)
        assert isinstance(choice, ValueList)
        assert written({name: choice.values[0]}) == text

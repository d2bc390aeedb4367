"""The numbers that any set of calls gives, by hand, and what they may not depend on."""

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farthing.errors import InputError
from farthing.features.calls import CallFeatures, columns, speakers
from farthing.traces.arrays import TraceArrays

NAN = float("nan")


def traces_of(answer: object, roles: tuple[str, ...], **signals: object) -> TraceArrays:
    answers = np.array(answer, dtype=np.int16)
    n = len(answers)
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=roles,
        models=("",) * len(roles),
        answer=answers,
        correct=answers == 0,
        cost_nano=np.ones(answers.shape, dtype=np.int64),
        signals={name: np.array(values, dtype=np.float32) for name, values in signals.items()},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, answers.shape[1], np.int16),
        independent=np.ones(n, bool),
    )


TALK = traces_of(
    [[[5, 5], [7, -1], [5, 7]]],
    ("base", "guide"),
    confidence=[[[0.5, 0.25], [0.75, 0.125], [NAN, 0.375]]],
    output_tokens=[[[3, NAN], [7, 1], [0, 2]]],
    latency_s=[[[1, 1], [1, 1], [1, 1]]],
    question_words=[[[NAN, 12], [12, 12], [12, 12]]],
)
"""Three rounds: the base says 5, 7, 5; the guide 5, nothing, 7."""


def seen(*calls: int, of: int = 6) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    return np.isin(np.arange(of), calls)[None]


def test_every_number_of_four_calls_by_hand() -> None:
    """Known: base 5, 7, 5 and, in round 2, a guide without an answer."""
    found = columns(TALK, np.zeros(1, int), seen(0, 2, 3, 4))
    expected = {
        "calls": 4,
        "answers": 3,
        "distinct": 2,
        "votes": 2,
        "share": 2 / 3,
        "runner_up": 1,
        "calls[base]": 3,
        "backs[base]": 2 / 3,
        "no_answer[base]": 0,
        "votes[base]": 2,
        "distinct[base]": 2,
        "calls[guide]": 1,
        "backs[guide]": 0,
        "no_answer[guide]": 1,
        "votes[guide]": 0,
        "distinct[guide]": 0,
        "question_words": 12,
        "confidence[base]": 0.625,
        "spread confidence[base]": 0.25,
        "last confidence[base]": 0.75,
        "confidence[guide]": 0.125,
        "spread confidence[guide]": NAN,
        "last confidence[guide]": 0.125,
        "confidence for": 0.5,
        "confidence against": 0.75,
        "best confidence for": 0.5,
        "best confidence against": 0.75,
        "output_tokens[base]": (math.log(4) + math.log(8) + math.log(1)) / 3,
        "spread output_tokens[base]": math.log(8),
        "last output_tokens[base]": 0,
        "output_tokens[guide]": math.log(2),
        "spread output_tokens[guide]": NAN,
        "last output_tokens[guide]": math.log(2),
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], [value], rtol=1e-6, err_msg=name)


def test_before_the_first_call_only_the_question_is_known() -> None:
    found = columns(TALK, np.zeros(1, int), seen())
    known = {name for name, values in found.items() if values[0] and not np.isnan(values[0])}
    assert known == {"question_words"}


def test_of_equally_many_votes_the_earlier_answer_leads() -> None:
    found = columns(TALK, np.zeros(1, int), seen(2, 4))
    assert found["confidence for"] == 0.75
    assert [found["votes"][0], found["runner_up"][0]] == [1, 1]


def test_in_a_cascade_each_round_speaks_for_itself() -> None:
    chain = traces_of([[[4], [2], [4]]], ("model",), confidence=[[[0.1], [0.2], [0.4]]])
    names, role = speakers(chain)
    assert names == ("model 1", "model 2", "model 3")
    assert role.tolist() == [0, 1, 2]
    found = columns(chain, np.zeros(1, int), seen(0, 2, of=3))
    assert [found[f"backs[model {i}]"][0] for i in (1, 3)] == [1, 1]
    assert np.isnan(found["backs[model 2]"])
    assert "votes[model 1]" not in found
    np.testing.assert_allclose(found["confidence[model 3]"], 0.4, rtol=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from([(4, 2), (1, 4), (5, 1)]))
@settings(deadline=None, max_examples=60)
def test_no_number_depends_on_unseen_calls_or_on_grades(seed: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    whole = (15, *shape)
    names = ("confidence", "uncertainty", "output_tokens", "answer_number")
    roles = tuple(f"r{i}" for i in range(shape[1]))

    def some() -> TraceArrays:
        signals = {name: rng.random(whole) for name in names}
        for values in signals.values():
            values[rng.random(whole) < 0.3] = np.nan
        return traces_of(rng.integers(-1, 4, whole), roles, **signals)

    one, other = some(), some()
    known = rng.random((15, shape[0] * shape[1])) < 0.5
    keep = known.reshape(whole)
    mixed = replace(
        other,
        answer=np.where(keep, one.answer, other.answer),
        correct=~one.correct,
        signals={n: np.where(keep, one.signals[n], other.signals[n]) for n in names},
    )
    row = np.arange(15)
    before, after = columns(one, row, known), columns(mixed, row, known)
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values, err_msg=name)


def test_only_what_varies_is_on_and_gaps_take_the_mean() -> None:
    two = traces_of([[[1], [1]], [[1], [2]]], ("model",), confidence=[[[0.2], [0.9]]] * 2)
    row, known = np.array([0, 0, 1]), np.array([[1, 0], [1, 1], [1, 1]], dtype=bool)
    features = CallFeatures.fit(two, row, known)
    assert "calls" in features.names  # 1, 2, 2
    assert "distinct" in features.names  # 1, 1, 2
    assert "backs[model 1]" not in features.names  # 1, 1, 1
    assert "confidence[model 2]" not in features.names  # unknown or 0.9
    unseen = features.look(two, np.array([0]), np.zeros((1, 2), bool))
    place = features.names.index("calls")
    assert unseen[0, place] == 0
    assert np.isfinite(unseen).all()
    of_second = features.names.index("backs[model 2]")
    assert unseen[0, of_second] == features.missing[of_second] == 0.5
    assert msgspec.convert(msgspec.to_builtins(features), CallFeatures) == features


def test_where_nothing_varies_one_number_is_left() -> None:
    alike = traces_of([[[1]]] * 3, ("model",))
    features = CallFeatures.fit(alike, np.arange(3), np.zeros((3, 1), bool))
    assert features.names == ("calls",)


def test_signals_that_are_gone_take_their_means() -> None:
    features = CallFeatures.fit(
        TALK, np.zeros(3, int), np.concatenate([seen(0), seen(0, 2), seen(0, 1)])
    )
    assert "confidence[base]" in features.names
    bare = features.look(replace(TALK, signals={}), np.zeros(1, int), seen(0, 2))
    place = features.names.index("confidence[base]")
    assert bare[0, place] == features.missing[place]


def test_other_roles_and_other_rounds_are_refused() -> None:
    features = CallFeatures.fit(TALK, np.zeros(1, int), seen(0, 2))
    chain = traces_of([[[4], [2], [4]]], ("model",))
    with pytest.raises(InputError, match="trained for 3 rounds of base, guide; these traces have"):
        features.look(chain, np.zeros(1, int), seen(0, of=3))

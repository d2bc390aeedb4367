"""One decision of each method in rounds, or call by call, worked out by hand from its formula."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from small_pool import small_pool

from farthing.methods.base import Learner, Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.lookahead.learner import LAZY_LEARNER, LookaheadLearner
from farthing.methods.selective.confidence import OwnConfidence
from farthing.methods.selective.policy import FixedRow, SelectivePolicy
from farthing.process.base import Policy
from farthing.process.batch_replay import NestedReplay, followed, replay
from farthing.process.play import outcome_of, play
from farthing.traces.arrays import PolicyReplies, TraceArrays
from farthing_lab.methods.baselines.llm_replies import LlmExitPolicy, LlmPolicy
from farthing_lab.methods.baselines.rounds import RandomPolicy
from farthing_lab.methods.baselines.uala import UalaLearner
from farthing_lab.methods.set_size_penalty import SetSizePenaltyLearner, SetSizePenaltyPolicy
from farthing_lab.methods.stopping import StoppingLearner

TENTH = Fraction(1, 10)
BASE, GUIDE = 1, 10
"""Nano-dollars of a call of each."""


def talk(
    answers: Sequence[Sequence[tuple[int, int]]], **signals: Sequence[Sequence[float]]
) -> TraceArrays:
    """Return questions on which a base and a guide answer in rounds; the right answer is 0.

    Args:
        answers: of each question and round what base and guide say.
        signals: of each question and round a number that was recorded beside the guide's answer.
    """
    said = np.array(answers, dtype=np.int16)
    n, rounds, _ = said.shape
    beside = {
        name: np.stack([np.full((n, rounds), np.nan), np.array(values)], axis=2)
        for name, values in signals.items()
    }
    return TraceArrays(
        ids=np.array([f"q{i}" for i in range(n)]),
        roles=("base", "guide"),
        models=("", ""),
        answer=said,
        correct=said == 0,
        cost_nano=np.tile(np.array([BASE, GUIDE]), (n, rounds, 1)),
        signals={name: values.astype(np.float32) for name, values in beside.items()},
        group=np.full(n, -1, np.int32),
        group_names=(),
        split=np.full(n, -1, np.int8),
        recorded=np.full(n, rounds, np.int16),
        independent=np.zeros(n, bool),
    )


def costs(policy: Policy, traces: TraceArrays, kappa: float) -> list[int]:
    """Return what each question costs at a threshold, in nano-dollars."""
    replayed = replay(policy, traces)
    assert isinstance(replayed, NestedReplay)
    found: list[int] = replayed.act(kappa).cost_nano.tolist()
    return found


def policy_of(learner: Learner, train: TraceArrays) -> Policy:
    return learner.fit(train, TENTH, 0, Silent()).policy


TWO = [[(1, 1), (0, 0)], [(1, 2), (0, 0)]]
"""Both are wrong at first; on the second question they say two things."""


@pytest.mark.parametrize(
    ("traces", "edges"),
    [
        (talk(TWO, uncertainty=[[0.2, 0.0], [3.0, 0.0]]), [1.2 / 2.2, 4 / 5]),
        (talk(TWO, confidence=[[0.8, 1.0], [0.5, 1.0]]), [1.2 / 2.2, 1.5 / 2.5]),
        (talk(TWO), [1 / 2, 1.5 / 2.5]),
    ],
)
def test_uala_goes_on_where_the_guide_doubts_enough(
    traces: TraceArrays, edges: list[float]
) -> None:
    """A doubt u scores (1 + u) / (2 + u): the uncertainty, else 1 - confidence, else the share of
    answers so far that are not the guide's: none of two, and one of two.
    """
    policy = policy_of(UalaLearner(), traces)
    one, both = BASE + GUIDE, 2 * (BASE + GUIDE)
    first, second = edges
    for kappa, expected in (
        (first - 1e-6, [both, both]),
        (first + 1e-6, [one, both]),
        (second - 1e-6, [one, both]),
        (second + 1e-6, [one, one]),
    ):
        assert costs(policy, traces, kappa) == expected


def test_fixed_pays_for_its_rounds_and_no_more() -> None:
    traces = talk([[(1, 1), (1, 0), (0, 0)]])
    for depth, cost in ((1, 11), (2, 22), (3, 33), (9, 33)):
        assert costs(FixedDepthPolicy(depth), traces, 0.5) == [cost]


def test_random_takes_every_allowed_action_alike() -> None:
    """Base, guide or next with 1/3 each; in the last round base or guide, since none follows."""
    found = RandomPolicy().scores(talk([[(1, 1), (0, 0)]]))
    np.testing.assert_allclose(found, [[[1 / 3] * 3, [1 / 2, 1 / 2, 0.0]]])


def recorded(action: Sequence[Sequence[int]]) -> TraceArrays:
    """Return questions of which a model said, round by round, what to do; each reply costs 3."""
    traces = talk([[(1, 1), (1, 1), (0, 0)]] * len(action))
    said = np.array(action, dtype=np.int8)
    return replace(traces, replies={"judge": PolicyReplies(said, np.full(said.shape, 3, np.int64))})


def test_an_llm_policy_does_what_the_replies_say() -> None:
    """-1 names nothing and goes on; in the last round the guide's answer is taken then."""
    traces = recorded([[0, 0, 0], [2, 1, 0], [-1, 2, -1]])
    found = LlmPolicy("judge").scores(traces).argmax(axis=2)
    assert found.tolist() == [[0, 0, 0], [2, 1, 0], [2, 2, 1]]
    assert LlmPolicy("judge").decision_cost_nano(traces).tolist() == [[3] * 3] * 3


def test_exit_pays_for_its_own_calls_and_replies_alone() -> None:
    """It stops where the reply names an answer, and gives its own; a round would cost 1 + 10."""
    traces = recorded([[0, 0, 0], [2, -1, 2], [2, 1, 2]])
    for role, own in (("base", BASE), ("guide", GUIDE)):
        policy, place = LlmExitPolicy("judge", role), ("base", "guide").index(role)
        found = policy.scores(traces).argmax(axis=2)
        assert found.tolist() == [[place] * 3, [2, 2, place], [2, place, place]]
        decided = policy.decision_cost_nano(traces) + traces.round_cost_nano
        assert decided.tolist() == [[3 + own] * 3] * 3


ALIKE = [[(0, 0), (0, 0)]] * 30 + [[(1, 1), (0, 0)]] * 10
"""Nothing tells the 10 questions apart whose second round is right where the first is wrong."""


def test_stopping_goes_on_where_the_gain_exceeds_the_threshold() -> None:
    """The logistic model has nothing but its constant: a quarter gains by a second round."""
    traces = talk(ALIKE)
    policy = policy_of(StoppingLearner(), traces)
    assert costs(policy, traces, 0.249) == [22] * 40
    assert costs(policy, traces, 0.251) == [11] * 40


def test_lookahead_weighs_the_gain_by_the_price_of_what_is_aimed_at() -> None:
    """Coverage of 0.9 needs a second round, whose gain of 1/4 for 11 is then just worth its price.

    So w = 1, and w / (1 + w) = 1/2; estimates come of three quarters of the questions or so.
    """
    traces = talk(ALIKE)
    policy = policy_of(LookaheadLearner(), traces)
    assert costs(policy, traces, 0.4) == [22] * 40
    assert costs(policy, traces, 0.6) == [11] * 40


def test_selective_asks_on_until_an_answer_is_sure_enough() -> None:
    """From 0.6 on it is. a is 0.7 sure of the first question; b of the second; nobody of the third.

    So one, two and all three are asked, whether questions are replayed at once or decided live.
    """
    sure = [[0.7, 0.2, 0.2], [0.5, 0.7, 0.2], [0.5, 0.4, 0.59]]
    traces = small_pool([[0, 1, 2]] * 3, [1, 2, 4], sure)
    row = FixedRow("calls", (0, 1, 2))
    policy = SelectivePolicy(FixedDepthPolicy(1), "argmax", 0.5, 0.6, OwnConfidence(), row)
    asked = [one * 10**7 for one in (1, 3, 7)]
    assert costs(policy, traces, 0.5) == asked
    assert outcome_of(play(policy, traces, 0.5, "allow")).cost_nano.tolist() == asked


@pytest.mark.parametrize(("dear", "first"), [(10.0, 1.0), (1.5, 1.5)])
def test_lazy_buys_first_what_gains_most_for_its_money(dear: float, first: float) -> None:
    """a is right on half of the questions for 1 cent; b on 9 of 10.

    For 10 cents b gains 0.09 a cent, and a's 0.5 come first; for 1.5 cents it gains 0.6.
    """
    said = [[0, 0]] * 45 + [[0, 1]] * 5 + [[1, 0]] * 45 + [[1, 2]] * 5
    traces = small_pool(said, [1, dear])
    policy = policy_of(LAZY_LEARNER, traces)
    assert costs(policy, traces, 1.0) == [round(first * 10**7)] * 100
    assert costs(policy, traces, 1e-9) == [round((1 + dear) * 10**7)] * 100


def test_a_price_on_answers_returns_those_that_are_likely_enough_for_it() -> None:
    """A covered question is worth 100 and an answer costs 25: at even odds of being right it is
    worth 0.5 x 100 / 25 = 2, and scores 2 / 3; at odds of 1 to 4 0.8, and 0.444.
    """
    traces = talk(ALIKE)
    learned = policy_of(SetSizePenaltyLearner(), traces)
    assert isinstance(learned, SetSizePenaltyPolicy)
    for odds, score in ((1.0, 2 / 3), (1 / 4, 0.8 / 1.8)):
        policy = replace(
            learned,
            inner=replace(learned.inner, price_nano=100.0),
            weights=np.append(np.zeros(len(learned.weights) - 1), np.log(odds)),
            answer_nano=25.0,
        )
        np.testing.assert_allclose(followed(policy, traces).scores[:, :, :-1], score)

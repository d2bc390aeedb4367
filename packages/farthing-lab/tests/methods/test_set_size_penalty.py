"""Which answers are worth returning."""

from fractions import Fraction

import numpy as np
import pytest

from farthing.methods.base import Silent
from farthing.methods.lookahead.learner import LookaheadConfig
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing_lab.comparison.thresholded import at_coverage
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset
from farthing_lab.methods.set_size_penalty import (
    SetSizePenaltyLearner,
    SetSizePenaltyPolicy,
    evidence,
)

CONFIG = preset("hotpotqa-llama2-7b").config
QUICK = LookaheadConfig(iterations=1, trees=8)


def test_evidence_against_a_loop_over_answers() -> None:
    traces = generate(CONFIG, 30, np.random.default_rng(0))
    traces.answer[3, 1, 0] = NO_ANSWER
    going_on = np.random.default_rng(1).random((30, 4))
    found = evidence(traces, going_on)
    for i in range(30):
        for t in range(4):
            for a in range(2):
                code = traces.answer[i, t, a]
                known = [int(c) for c in traces.answer[i, : t + 1].reshape(-1) if c != NO_ANSWER]
                if code == NO_ANSWER:
                    continue
                votes = {c: known.count(c) for c in known}
                expected = [
                    votes[int(code)],
                    votes[int(code)] / len(known),
                    votes[int(code)] == max(votes.values()),
                    len(votes),
                    np.log(going_on[i, t] / (1 - going_on[i, t])),
                    *(t == s for s in range(4)),
                    *(a == u for u in range(2)),
                ]
                np.testing.assert_allclose(found[i, t, a], np.array(expected, dtype=float))


def test_evidence_does_not_depend_on_what_comes_later() -> None:
    traces = generate(CONFIG, 30, np.random.default_rng(0))
    changed = generate(CONFIG, 30, np.random.default_rng(0))
    changed.answer[:, 2:] = 0
    going_on = np.full((30, 4), 0.5)
    np.testing.assert_array_equal(
        evidence(traces, going_on)[:, :2], evidence(changed, going_on)[:, :2]
    )


@pytest.fixture(scope="module")
def train() -> TraceArrays:
    return generate(CONFIG, 400, np.random.default_rng(2))


@pytest.mark.slow
def test_the_dearer_an_answer_the_smaller_the_set(train: TraceArrays) -> None:
    fresh = generate(CONFIG, 4_000, np.random.default_rng(3))
    found = []
    for price in (0.01, 1.0, 4.0):
        learner = SetSizePenaltyLearner(QUICK, set_size_price=price)
        policy = learner.fit(train, Fraction(1, 10), 0, Silent()).policy
        found.append(at_coverage(policy, fresh, 0.9))
    sizes = [each["set_size"] for each in found]
    costs = [each["cost_usd"] for each in found]
    assert sizes[0] > sizes[1] + 0.05 > sizes[2] + 0.3
    assert costs[0] <= costs[1] * 1.01 <= costs[2] * 1.01
    assert all(each["coverage"] >= 0.9 for each in found)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_policy(train: TraceArrays) -> None:
    policies = [
        SetSizePenaltyLearner(QUICK).fit(train, Fraction(1, 10), 5, Silent()).policy for _ in "ab"
    ]
    first, second = (p.to_state()[0] for p in policies if isinstance(p, SetSizePenaltyPolicy))
    assert first.keys() == second.keys()
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)

"""How sure an answer is, from what was seen when it was given."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from subprocess import run
from sys import executable

import numpy as np
import pytest

from farthing.bundle import folder as bundles
from farthing.errors import InputError, TooFewTracesError
from farthing.methods.base import Silent
from farthing.methods.baselines.fixed import FixedDepthPolicy
from farthing.methods.lookahead.learner import LookaheadConfig, LookaheadLearner
from farthing.methods.lookahead.policy import LookaheadPolicy
from farthing.methods.selective.confidence import Evidence
from farthing.methods.selective.learner import confident
from farthing.methods.selective.policy import as_trained, walk
from farthing.process.action_space import SpaceName
from farthing.process.batch_replay import followed
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.system import origin_of
from farthing_lab.generator.generate import generate
from farthing_lab.generator.presets import preset

CONFIG = preset("hotpotqa-llama2-7b").config
ALPHA = Fraction(1, 10)


def drawn(n: int, seed: int = 0) -> TraceArrays:
    traces = generate(CONFIG, n, np.random.default_rng(seed))
    traces.answer[:: n // 3, 1, 0] = NO_ANSWER
    return replace(traces, independent=np.ones(n, bool), signals={})


def test_evidence_against_a_loop_over_calls() -> None:
    traces = drawn(30)
    walked = walk(FixedDepthPolicy(4), traces, "argmax")
    found = Evidence.fit(traces).of(traces, walked.known, walked.along.traces.answer)
    for i in range(30):
        for t in range(4):
            calls = [
                (role, int(traces.answer[i, s, role])) for s in range(t + 1) for role in (0, 1)
            ]
            for a in (0, 1):
                mine = int(traces.answer[i, t, a])
                if mine == NO_ANSWER:
                    continue
                backs = [role for role, code in calls if code == mine]
                other = [(role, code) for role, code in calls if code not in (mine, NO_ANSWER)]
                votes = {code: sum(c == code for _, c in other) for _, code in other}
                expected = [
                    backs.count(0),
                    backs.count(1),
                    sum(role == 0 for role, _ in other),
                    sum(role == 1 for role, _ in other),
                    len(backs) / (len(backs) + len(other)),
                    len(backs) - max(votes.values(), default=0),
                    len(votes),
                ]
                np.testing.assert_allclose(found[i, t, a], np.array(expected, dtype=float))


def test_a_signal_counts_for_its_answer_and_against_the_others() -> None:
    traces = drawn(6)
    doubt = np.arange(48, dtype=np.float32).reshape(6, 4, 2)
    traces = replace(traces, signals={"uncertainty": doubt})
    walked = walk(FixedDepthPolicy(4), traces, "argmax")
    found = Evidence.fit(traces).of(traces, walked.known, walked.along.traces.answer)
    scaled = (doubt - doubt.mean(axis=(0, 1))) / doubt.std(axis=(0, 1))
    same = (traces.answer[1] == traces.answer[1, 3, 1]) & (traces.answer[1] != NO_ANSWER)
    others = ~same & (traces.answer[1] != NO_ANSWER)
    expected = [scaled[1][same].sum(), scaled[1][others].sum()]
    np.testing.assert_allclose(found[1, 3, 1, -2:], expected, atol=1e-5)


def test_what_is_seen_call_by_call_are_the_calls_bought_so_far() -> None:
    traces = drawn(60)
    config = LookaheadConfig("calls", iterations=1, trees=4)
    policy = LookaheadLearner(config).fit(traces, ALPHA, 0, Silent()).policy
    assert isinstance(policy, LookaheadPolicy)
    seen = walk(policy, traces, "argmax").known
    number = np.broadcast_to(np.arange(8).reshape(4, 2), traces.answer.shape).copy()
    bought = followed(policy, replace(traces, cost_nano=number)).traces.cost_nano[:, :, 0]
    for i in range(60):
        known: set[int] = set()
        for step in range(8):
            known.add(int(bought[i, step]))
            assert set(np.flatnonzero(seen[i, step]).tolist()) == known
        assert len(known) == 8


def test_it_goes_on_until_an_answer_is_sure_enough() -> None:
    traces = drawn(300)
    policy = confident(FixedDepthPolicy(3), traces, "argmax", ALPHA).policy
    sure = walk(policy.inner, traces, "argmax").sure(policy.confidence, traces)
    for enough in (0.0, 0.6, 1.1):
        scores = followed(replace(policy, until=1.0, enough=enough), traces).scores
        for i in range(300):
            end = next(t for t in range(4) if t == 2 or sure[i, t].max() >= enough)
            assert scores[i, :end, 2].tolist() == [1.0] * end
            assert scores[i, end, 2] == 0
            assert scores[i, end].max() == sure[i, end].max()
            assert not scores[i, :end, :2].any()


@pytest.mark.slow
@pytest.mark.parametrize("space", ["rounds", "calls"])
def test_a_bundle_of_it_loads_without_learning_libraries(tmp_path: Path, space: SpaceName) -> None:
    traces = drawn(80)
    config = LookaheadConfig(space, iterations=1, trees=4)
    inner = LookaheadLearner(config).fit(traces, ALPHA, 0, Silent()).policy
    policy = confident(inner, traces, "argmax", ALPHA).policy
    bundles.save(
        tmp_path / "b",
        policy,
        origin=origin_of(traces, "f"),
        kappa=None,
        certificate=None,
        empty="allow",
    )
    back = bundles.load(tmp_path / "b").policy
    assert isinstance(back, type(policy))
    np.testing.assert_array_equal(followed(back, traces).scores, followed(policy, traces).scores)
    assert as_trained(back, "allow") == (back.inner, "argmax")
    assert back.space == space
    if space == "calls":
        with pytest.raises(InputError, match="calls that saw earlier ones"):
            followed(back, replace(traces, independent=np.zeros(80, bool)))
    program = (
        f"import sys; from farthing.bundle.folder import load; load({str(tmp_path / 'b')!r}); "
        "assert not {'torch', 'sklearn'} & set(sys.modules)"
    )
    done = run([executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_too_few_answers_to_judge_any_without_its_question() -> None:
    traces = drawn(40)
    answer = np.full_like(traces.answer, NO_ANSWER)
    answer[0] = traces.answer[0]
    with pytest.raises(TooFewTracesError, match="have an answer"):
        confident(FixedDepthPolicy(3), replace(traces, answer=answer), "argmax", ALPHA)

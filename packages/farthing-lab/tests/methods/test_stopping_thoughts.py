"""Stopping a thought: by hand, against every prefix there is, and end to end under promises."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from farthing.bundle import folder as bundles
from farthing.errors import InputError
from farthing.features.rounds import unchanged
from farthing.methods.base import Dataset, Learner, Silent
from farthing.process.base import InRounds
from farthing.process.batch_replay import NestedReplay, replay
from farthing.process.budget import PerQuestion
from farthing.process.play import outcome_of, play
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.coverage import Coverage
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective
from farthing.recommendation.candidates import candidates, default_candidates
from farthing.recommendation.escalation import EscalationModel
from farthing.recommendation.played import ReportingQuestions
from farthing.recommendation.recommend import recommend
from farthing.recommendation.splits import as_played
from farthing.traces.arrays import TraceArrays
from farthing.traces.assemble import assemble
from farthing.traces.base import Call, Trace
from farthing.traces.grades.overlay import graded
from farthing.traces.pool import cascade
from farthing_lab.methods.baselines.uala import UalaLearner
from farthing_lab.methods.stopping import StoppingLearner
from farthing_lab.methods.thinking.dtrec import DtrecLearner, DtrecPolicy
from farthing_lab.methods.thinking.repeats import RepeatsPolicy
from farthing_lab.methods.thinking.settled import SettledLearner, SettledPolicy, lost_by_stopping

CUTS = 5
NO_ANSWER = -1


def thoughts(n: int, seed: int = 0, *, even: bool = False) -> TraceArrays:
    """Thoughts that settle, and say so in their entropy; some end before others, or say nothing.

    Args:
        n: how many.
        seed: of the draw.
        even: whether each cut is as right as the end, so that thinking gains nothing.
    """
    rng = np.random.default_rng(seed)
    traces = []
    for i in range(n):
        settles = 1 if even else int(rng.integers(1, CUTS + 1))
        cuts = CUTS if rng.random() < 0.8 else max(settles, 2)
        final = str(rng.integers(2))
        calls = []
        for t in range(1, cuts + 1):
            said = final if t >= settles else str(rng.integers(2, 5))
            calls.append(
                Call(
                    round=t,
                    role="m",
                    answer=said if t >= settles or rng.random() < 0.9 else None,
                    cost_usd=float(rng.integers(1, 9)) * 1e-6,
                    largest_cost_usd=9e-6,
                    latency_s=float(t),
                    ended=t == cuts if cuts < CUTS else None,
                    extra={"entropy": float(rng.gamma(2, 0.3 if t < settles else 0.05))},
                )
            )
        traces.append(Trace(id=f"q{i}", gold=["0"], calls=calls))
    return assemble(traces)


def fitted(name: str, traces: TraceArrays) -> InRounds:
    learner: dict[str, Learner] = {
        "settled": SettledLearner(),
        "dtrec": DtrecLearner(),
        "stopping": StoppingLearner(),
        "uala": UalaLearner(),
    }
    if name == "repeats":
        return RepeatsPolicy()
    found = learner[name].fit(traces, Fraction(1, 10), 0, Silent()).policy
    assert isinstance(found, InRounds)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["repeats", "settled", "dtrec", "stopping", "uala"])
def test_a_prefix_is_paid_and_its_last_answer_given(name: str) -> None:
    """Enumerate every prefix at every threshold; kappa* is the largest one that covers."""
    recorded = thoughts(60)
    traces = cascade(recorded)
    policy = fitted(name, traces)
    followed = replay(policy, traces)
    assert isinstance(followed, NestedReplay)
    go_on = policy.scores(traces)[:, :, 1]
    for kappa in [*np.linspace(0.01, 1, 23), *followed.thresholds()[::7]]:
        found = followed.act(float(kappa))
        for i in range(len(traces)):
            last: int = 0
            while last + 1 < CUTS and go_on[i, last] >= kappa:
                last += 1
            said = recorded.answer[i, 0, : last + 1]
            given = [t for t, answer in enumerate(said) if answer != NO_ANSWER]
            assert found.length[i] == last + 1
            assert found.cost_nano[i] == recorded.cost_nano[i, 0, last]
            assert found.best_correct[i] == bool(given and recorded.correct[i, 0, given[-1]])
            assert found.in_set[i] == recorded.correct[i, 0, : last + 1].any()
    steps = np.unique(np.append(go_on[:, :-1], 1.0))
    for row in np.flatnonzero(recorded.correct.any(axis=(1, 2))):
        covers = [k for k in steps if followed.act(float(k)).covered[row]]
        assert followed.critical[row] == pytest.approx(max(covers))


@pytest.mark.parametrize("name", ["repeats", "settled", "dtrec", "uala"])
def test_playing_cut_by_cut_says_the_same(name: str) -> None:
    traces = cascade(thoughts(25, 1))
    policy = fitted(name, traces)
    for kappa in (0.05, 0.3, 0.5, 0.9, 1.0):
        one, many = outcome_of(play(policy, traces, kappa)), replay(policy, traces).act(kappa)
        for column in ("cost_nano", "best_correct", "covered", "length", "set_size"):
            np.testing.assert_array_equal(getattr(one, column), getattr(many, column))


def test_a_budget_stops_a_thought_before_the_cut_that_may_cost_too_much() -> None:
    recorded = thoughts(40, 2)
    traces = cascade(recorded)
    budget = PerQuestion(20_000).of(traces)
    found = replay(RepeatsPolicy(), traces, "argmax", budget).act(0.0)
    for i, spent in enumerate(found.cost_nano.tolist()):
        so_far = [0, *recorded.cost_nano[i, 0].tolist()]
        afforded = 0
        for before, after in pairwise(so_far):
            if after > before and before + 9_000 > 20_000:
                break
            afforded = after
        assert spent == afforded <= 20_000


def test_the_answer_that_stays_is_counted_from_where_it_came() -> None:
    said = ["a", "a", "c", None, "b", "b"]
    calls = [Call(round=t, role="m", answer=one) for t, one in enumerate(said, start=1)]
    scores = RepeatsPolicy().scores(cascade(assemble([Trace(id="q", calls=calls)])))
    np.testing.assert_allclose(scores[0, :, 1], [1 / 2, 1 / 3, 1 / 2, 1, 1 / 2, 0])


def test_all_signs_must_agree_that_a_thought_is_done() -> None:
    """By a loop: the rank of each sign among training cuts before the last, and the least one."""
    train, traces = cascade(thoughts(80, 11)), cascade(thoughts(20, 12))
    policy = fitted("dtrec", train)
    assert isinstance(policy, DtrecPolicy)
    assert set(policy.known) == {"unchanged", "entropy"}
    stayed, entropy = unchanged(train)[:, :-1], train.signals["entropy"][:, :-1, 0]
    scores = policy.scores(traces)
    for i in range(len(traces)):
        for t in range(CUTS - 1):
            here = unchanged(traces)[i, t], traces.signals["entropy"][i, t, 0]
            as_long = (stayed <= here[0]).mean()
            as_sure = (entropy >= here[1]).sum() / np.isfinite(entropy).sum()
            assert scores[i, t, 1] == pytest.approx(1 - min(as_long, as_sure))
    silent = replace(traces, signals={})
    assert (fitted("dtrec", train).scores(silent)[:, :-1, 1] == 1).all()  # unknown is not sure


def test_where_the_full_thought_is_wrong_too_stopping_loses_nothing() -> None:
    wrong = [Call(round=t, role="m", answer=said) for t, said in enumerate("4545", start=1)]
    right = [Call(round=t, role="m", answer=said) for t, said in enumerate("4554", start=1)]
    made = [Trace(id=name, gold=["4"], calls=c) for name, c in (("w", wrong), ("r", right))]
    lost = lost_by_stopping(cascade(assemble(made)))
    assert lost.tolist() == [[False, False, False], [False, True, True]]


@pytest.mark.slow
def test_settled_learns_what_stopping_loses_and_what_is_left_to_pay() -> None:
    recorded = thoughts(300, 3)
    traces = cascade(graded(recorded, "same as cut-5"))
    policy = fitted("settled", traces)
    assert isinstance(policy, SettledPolicy)
    paid = traces.cost_nano[:, :, 0].cumsum(axis=1).mean(axis=0)
    np.testing.assert_allclose(policy.rest, 1 - paid[:-1] / paid[-1])
    gains = policy.model.gains(traces)
    lost = ~traces.correct[:, :-1, 0]
    assert gains[lost].mean() > 0.6
    assert gains[~lost].mean() < 0.25
    rate = gains / policy.rest
    np.testing.assert_allclose(policy.scores(traces)[:, :-1, 1], rate / (1 + rate))


def test_thoughts_of_one_cut_have_nothing_to_decide() -> None:
    calls = [Call(round=1, role="m", answer="4", cost_usd=1e-6, ended=True)]
    traces = cascade(assemble([Trace(id=f"q{i}", gold=["4"], calls=calls) for i in range(20)]))
    for policy in (fitted("settled", traces), fitted("dtrec", traces), RepeatsPolicy()):
        assert replay(policy, traces).act(0.5).cost_nano.tolist() == [1_000] * 20


def test_who_takes_part_on_thoughts_and_who_does_not(small_pool: TraceArrays) -> None:
    dataset = Dataset("thoughts", thoughts(60))
    one = {candidate.method.name for candidate in default_candidates(dataset, "one")}
    assert one == {"always", "best-single", "repeats", "settled"}
    sets = {candidate.method.name for candidate in default_candidates(dataset, "set")}
    assert {"stopping", "lookahead", "fixed"} <= sets
    assert not sets & {"lazy", "pool-gain", "pool-cover"}
    (routed,) = candidates(dataset, ["pool-gain"])
    assert routed.learner is None
    assert "asks in any order" in routed.note
    pool = Dataset("pool", small_pool)
    (stops,) = candidates(pool, ["settled"])
    assert stops.learner is None
    assert "hold no cuts" in stops.note
    assert not {"settled", "repeats"} & {one.method.name for one in default_candidates(pool, "one")}


@pytest.fixture
def small_pool() -> TraceArrays:
    calls = [Call(round=1, role=role, answer="4", cost_usd=1e-6) for role in ("a", "b")]
    return assemble([Trace(id=f"q{i}", gold=["4"], calls=calls) for i in range(30)])


@pytest.mark.slow
def test_agreement_with_the_full_thought_is_proved_and_saves(tmp_path: Path) -> None:
    recorded = thoughts(400, 4)
    dataset = Dataset("thoughts", recorded)
    found = recommend(dataset, Agreement(epsilon=Fraction(1, 10)))
    assert found.reference == "cut-5"
    assert not found.guessed
    assert found.name == "settled"
    ours, theirs = found.found.value.yours, found.found.value.theirs
    assert theirs is not None
    assert ours.cost_nano < 0.9 * theirs.cost_nano
    assert ours.right / ours.questions > 0.9
    bundles.write(tmp_path / "bundle", found.bundle)
    bundle = bundles.load(tmp_path / "bundle")
    policy = bundle.policy
    assert isinstance(policy, SettledPolicy)
    fresh = thoughts(400, 5)
    played = as_played("fresh", bundle, graded(fresh, "same as cut-5"))
    assert bundle.kappa is not None
    new = replay(policy, played).act(bundle.kappa)
    assert new.best_correct.mean() > 0.87
    assert new.cost_nano.sum() < 0.9 * fresh.cost_nano[:, 0, -1].sum()


@pytest.mark.slow
def test_where_every_cut_is_as_right_as_the_end_the_first_is_enough() -> None:
    found = recommend(Dataset("even", thoughts(200, 6, even=True)), Parity(epsilon=Fraction(1, 20)))
    assert found.reference == "cut-5"
    recorded = thoughts(200, 6, even=True)
    cheapest = recorded.cost_nano[:, 0, 0].mean()
    assert found.found.value.yours.cost_nano / found.found.value.yours.questions < 1.2 * cheapest


@pytest.mark.slow
def test_coverage_of_sets_of_cuts() -> None:
    found = recommend(Dataset("thoughts", thoughts(300, 7)), Coverage("0.9"))
    assert found.bundle.certificate is not None
    assert found.bundle.certificate.promises


def test_thoughts_that_were_cut_short_prove_nothing() -> None:
    whole, short = thoughts(50, 8), []
    for i in range(60):
        calls = [Call(round=1, role="m", answer="0", cost_usd=1e-6, ended=False)]
        short.append(Trace(id=f"s{i}", gold=["0"], calls=calls, truncated=True))
    calls = [Call(round=t, role="m", answer="0", cost_usd=1e-6) for t in range(1, CUTS + 1)]
    traces = assemble([*short, Trace(id="one", gold=["0"], calls=calls)])
    assert whole.complete.all()
    with pytest.raises(InputError, match="1 complete question"):
        recommend(Dataset("short", traces), Agreement())


def test_a_thought_that_is_passed_on_costs_the_rest_of_it() -> None:
    """By the sum of what each cut adds; a thought that reached the end costs nothing more."""
    traces = thoughts(40, seed=4)
    part = ReportingQuestions(traces, cascade(traces))
    passed = EscalationModel.of(part, f"cut-{CUTS}")
    turns = cascade(traces)
    for reached in range(CUTS + 1):
        made = np.zeros((len(traces), CUTS), dtype=bool)
        made[:, :reached] = True
        rest = turns.cost_nano[:, reached:, 0].sum(axis=1)
        assert passed.extra_nano(made).tolist() == rest.tolist()


@pytest.mark.slow
def test_a_selective_promise_of_thoughts_is_about_prefixes() -> None:
    """What is proved thinks up to a cut, whose whole price it pays, and leaves the rest."""
    found = recommend(Dataset("thoughts", thoughts(600, seed=5)), Selective("0.55", "0.2"))
    assert found.certificate is not None
    assert found.certificate.promises
    played = as_played("new", found.bundle, thoughts(200, seed=6))
    made = found.bundle.policy.calls_made(played)  # type: ignore[attr-defined]
    assert (np.diff(made.astype(int), axis=1) <= 0).all(), "cuts are reached one after another"

"""A selective promise of a pool: one candidate of each family is proved, at a share of delta."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from made_up_pool import COST_NANO, ROLES, pool, questions
from msgspec import structs
from scipy.stats import binom

import farthing as ft
from farthing.methods.base import Dataset, Silent
from farthing.methods.selective.learner import PassedTo
from farthing.methods.selective.policy import SelectivePolicy
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.kinds.escalated import EscalatedPromise
from farthing.promises.kinds.parity import Parity
from farthing.promises.kinds.selective import Selective, SelectivePromise
from farthing.recommendation.certify import Contender, Proved, prove_cheapest
from farthing.recommendation.plan import plans_of, proves_side_by_side
from farthing.recommendation.played import PlayedPolicy
from farthing.recommendation.prove import prove
from farthing.recommendation.recalibrate import recalibrate
from farthing.recommendation.recommend import recommend
from farthing.recommendation.selection import Selection
from farthing.recommendation.selective_trials import prospects
from farthing.recommendation.splits import Roles, split_four_ways
from farthing.recommendation.trial import select
from farthing.traces.arrays import NO_ANSWER, TraceArrays
from farthing.traces.eligibility import eligible

ALPHA, DELTA = Fraction(1, 20), Fraction(1, 10)
ASKED = Selective(1 - ALPHA, DELTA)
WHOLE = Selective(1 - ALPHA, DELTA, "large", Fraction(1, 50))
NOBODY_CHOOSES = Roles(choose=False, measure=False)
SHARES = [Fraction(3, 5), Fraction(3, 10), Fraction(1, 10)]
N = 700
SMALL = "small, by its confidence"


def selected(traces: TraceArrays, asked: Promise = ASKED) -> Selection:
    """Return who is tried on some questions, and who is proved."""
    known = Dataset("made up", traces, reference="large")
    (plan,) = plans_of(known, asked, eligible(traces, "large"), 0)
    return select(plan, None, Silent())


@cache
def proved(asked: Selective = ASKED) -> tuple[list[Contender], list[Proved], int]:
    contenders = [one for _, one in selected(pool(N), asked).contenders()]
    place, proofs, _ = prove_cheapest(contenders)
    return contenders, proofs, place


def by_hand(one: Contender, share: Fraction) -> tuple[list[bool], list[int]]:
    """Return which thresholds are proved at a share of delta, and what each costs in all.

    Question by question, from what was recorded: no answer costs the price of large, unless it was
    asked already.
    """
    assert one.laid_out is not None
    assert isinstance(one.bundle.policy, SelectivePolicy)
    recorded, played = one.prove.recorded, one.prove.played
    made = one.bundle.policy.calls_made(played)
    spent = (played.cost_nano[:, :, 0] * made).sum(axis=1)
    large = played.models[0].split(" -> ").index("large")
    proof, costs, going_on = [], [], True
    for kappa in one.laid_out.row:
        done = one.prove.replay(PlayedPolicy(one.bundle.policy, "allow")).act(float(kappa))
        given = done.set_size > 0
        wrong = int((given & ~done.best_correct).sum())
        going_on &= bool(binom.cdf(wrong, given.sum(), float(ALPHA)) <= DELTA * share)
        proof.append(going_on)
        extra = np.where(given | made[:, large], 0, recorded.cost_nano[:, 0, 2])
        costs.append(int((spent + extra).sum()))
    return proof, costs


def test_one_of_each_family_is_proved_and_all_other_questions_prove() -> None:
    contenders, proofs, _ = proved()
    assert [one.asked.share for one in contenders] == SHARES
    assert sum(SHARES) == 1
    learned, plain, alone = (one.name for one in contenders)
    assert learned.endswith("by a mixture")
    assert plain.endswith(("its confidence", "agreement"))
    assert alone == "large, by its confidence"
    train = int(0.3 * N)
    for proof in proofs:
        assert proof.certificate.n == N - train
        promise = proof.certificate.promise
        assert isinstance(promise, SelectivePromise)
        assert [chain.name for chain in promise.chains] == [learned, plain, alone]
        assert [chain.share for chain in promise.chains] == SHARES


def test_the_cheapest_with_the_reference_for_what_is_withheld_is_taken() -> None:
    """Each at the share that it ended with; large passes all its thresholds, and passes on."""
    contenders, proofs, place = proved()
    totals = []
    for one, proof in zip(contenders, proofs, strict=True):
        promise = proof.certificate.promise
        assert isinstance(promise, SelectivePromise)
        assert promise.delta_share is not None
        held, costs = by_hand(one, promise.delta_share)
        assert promise.point == min(np.flatnonzero(held), key=lambda i: (costs[i], -i))
        assert proof.exhausted == all(held)
        assert promise.candidate == one.name
        assert promise.point is not None
        totals.append(costs[promise.point])
    assert place == int(np.argmin(totals))
    shares = [proof.certificate.promise.delta_share for proof in proofs]  # type: ignore[attr-defined]
    passed = [chain.passed for chain in proofs[0].certificate.promise.chains]  # type: ignore[attr-defined]
    assert passed == [False, False, True]
    assert shares == [Fraction(2, 3), Fraction(1, 3), Fraction(1, 10)]


@pytest.mark.slow
def test_who_answers_little_for_little_is_dearer_with_the_reference_for_the_rest() -> None:
    """Small knows half of the answers; medium costs twice as much and knows nearly all."""
    plain, rng = pool(N), np.random.default_rng(0)
    right = plain.correct.copy()
    right[:, 0, 0] = able = rng.random(N) < 0.5
    right[:, 0, 1] = rng.random(N) < 0.99
    sure = np.full((N, 1, 3), np.nan, dtype=np.float32)
    sure[:, 0, 0] = np.where(able, 0.9, 0.1)
    answer = np.where(right, 0, plain.answer.clip(1)).astype(np.int16)
    known = replace(plain, correct=right, answer=answer, signals={"confidence": sure})
    selection = selected(known)
    first = selection.trials[0]
    assert first.name == "medium, by a mixture"
    tried = prospects(ASKED, "large", selection.plan.training(first.bundle), 490)
    (small,) = (one for family in tried for one in family if one.fit.name == SMALL)
    bundle = structs.replace(first.bundle, policy=small.fit.policy)
    second = replace(first, name=SMALL, bundle=bundle, row=small.row)
    halves = tuple(replace(one, share=Fraction(1, 2)) for one in (first, second))
    contenders = [one for _, one in replace(selection, trials=halves).contenders()]
    place, proofs, _ = prove_cheapest(contenders)
    assert all(proof.certificate.promises for proof in proofs)
    spent = {
        one.name: proof.bundle.value.yours.cost_usd
        for one, proof in zip(contenders, proofs, strict=True)
        if proof.bundle.value is not None
    }
    assert spent == pytest.approx({SMALL: 0.0001, first.name: 0.0002})
    assert contenders[place].name == first.name


@pytest.mark.slow
def test_of_the_whole_both_parts_are_proved_at_half_of_each_share() -> None:
    contenders, proofs, place = proved(WHOLE)
    assert [one.asked.share for one in contenders] == SHARES
    for one, proof in zip(contenders, proofs, strict=True):
        promise = proof.certificate.promise
        assert isinstance(promise, EscalatedPromise)
        if promise.point is None:
            continue
        held, _ = by_hand(one, promise.own_delta / DELTA / 2)
        assert held[promise.point]
        assert "It was one of 3 candidates" in proof.certificate.sentence()
    assert proofs[place].certificate.promises


# ---- The certificate


@pytest.mark.slow
@pytest.mark.parametrize("asked", [ASKED, WHOLE, Parity("large", "0.05")], ids=str)
def test_a_certificate_is_checked_with_its_chains(asked: Promise) -> None:
    contenders, proofs, place = (
        proved(asked)
        if isinstance(asked, Selective)
        else _prove([one for _, one in selected(pool(N), asked).contenders()])
    )
    one, certificate = contenders[place], proofs[place].certificate
    own = one.asked.sharing(certificate.promise.own_delta / DELTA)  # type: ignore[attr-defined]
    found = prove(own, one.bundle, one.train, one.prove, None, one.laid_out).tested
    assert found is not None
    read = Certificate.from_json(certificate.to_json())
    assert read.verify(found.evidence) == []
    less = prove(one.asked.sharing(Fraction(1, 50)), one.bundle, one.train, one.prove, None)
    other = certificate.verify(less.tested.evidence if less.tested else None)
    assert other


def _prove(contenders: list[Contender]) -> tuple[list[Contender], list[Proved], int]:
    place, proofs, _ = prove_cheapest(contenders)
    return contenders, proofs, place


@pytest.mark.slow
def test_a_later_calibration_is_of_the_same_policy_and_has_all_of_delta() -> None:
    first = recommend(Dataset("made up", pool(N)), ASKED, reference="large")
    found = recalibrate("b", first.bundle, pool(500, seed=1))
    assert (found.laid_out, found.proving) == (100, 400)
    assert found.proved
    policy, promise = found.bundle.policy, found.certificate.promise
    assert isinstance(policy, SelectivePolicy)
    assert isinstance(first.bundle.policy, SelectivePolicy)
    assert str(policy.to_state()) == str(first.bundle.policy.to_state())
    assert isinstance(promise, SelectivePromise)
    assert promise.candidate == first.name
    assert (promise.chains, promise.own_delta) == ((), DELTA)
    assert promise.candidate_delta == DELTA
    assert found.certificate.n == 400


# ---- Who takes part


def test_without_confidences_agreement_and_the_row_before_the_reference_take_their_place() -> None:
    plain = replace(pool(N), signals={})
    names = [one.name for _, one in selected(plain).contenders()]
    assert names[1:] == ["small and medium, by agreement", "small and large, by a mixture"]


def test_few_questions_prove_one_candidate_with_all_of_delta() -> None:
    """A hundred questions each, and those of the largest shares."""
    ((trial, one),) = selected(pool(200)).contenders()
    assert one.asked.share == 1
    assert trial.name.endswith("by a mixture")
    shares = [one.asked.share for _, one in selected(pool(400)).contenders()]
    assert shares == [Fraction(2, 3), Fraction(1, 3)]


def test_what_is_too_slow_is_not_proved() -> None:
    found = recommend(Dataset("made up", pool(N)), ASKED, reference="large", deadline_s=2.0)
    assert "large, by its confidence" in dict(found.skipped)
    assert "more than" in dict(found.skipped)["large, by its confidence"]
    assert all("large" not in trial.name for trial in found.trials)
    assert sum(trial.share for trial in found.trials) == 1


def test_who_is_proved_side_by_side() -> None:
    traces = pool(60)
    assert proves_side_by_side(ASKED, traces)
    assert not proves_side_by_side(ASKED, replace(traces, independent=np.zeros(60, dtype=bool)))
    assert proves_side_by_side(ASKED, replace(traces, models=("a", "a", "large")))  # two efforts
    assert not proves_side_by_side(ASKED, ft.generate("hotpotqa-llama2-7b", 60).arrays)
    assert not proves_side_by_side(ft.Coverage("0.9"), traces)


def test_candidates_are_held_against_whom_questions_are_passed_to() -> None:
    """Not against another model that more is paid for."""
    asked = Selective(1 - ALPHA, DELTA, ROLES[1], Fraction(1, 10))
    (plan,) = plans_of(Dataset("made up", pool(300)), asked, eligible(pool(300), ROLES[1]), 0)
    assert plan.reference == ROLES[1]
    assert not plan.guessed


def test_passing_on_costs_nothing_once_it_was_asked() -> None:
    known = np.array([[[True, False], [True, True]], [[False, True], [False, True]]])
    assert PassedTo(1, np.array([7, 5])).after(known).tolist() == [[7, 0], [0, 0]]


# ---- What is said


@pytest.mark.slow
def test_the_note_says_what_a_question_costs_with_the_reference_for_the_rest() -> None:
    found = recommend(Dataset("made up", pool(N)), ASKED, reference="large")
    rows = split_four_ways(pool(N), 0, NOBODY_CHOOSES).prove
    (_, *_), (proof, *_), _ = proved()
    assert len(rows) == found.found.value.yours.questions
    unanswered = found.found.value.yours.unanswered
    assert unanswered > 0
    whole = found.found.value.yours.cost_usd + unanswered / len(rows) * COST_NANO[2] / 1e9
    (note,) = (note for note in found.notes if "get no answer" in note)
    assert note.startswith(f"{unanswered} of these {len(rows)} questions get no answer; with large")
    assert f"1,000 cost ${1_000 * whole:.3f} and " in note
    assert found.tradeoffs == ()
    assert proof.points is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "then"),
    [
        (Parity("large", "0.05"), "that counts as wrong"),
        (ft.Agreement("large", "0.2"), "no answer agrees with that"),
    ],
    ids=["parity", "agreement"],
)
def test_questions_that_the_reference_did_not_answer_are_counted(asked: Promise, then: str) -> None:
    plain = pool(N)
    assert not any("gave no answer" in note for note in _notes(plain, asked))
    answer, correct = plain.answer.copy(), plain.correct.copy()
    silent = np.arange(N) % 50 == 0
    answer[silent, 0, 2], correct[silent, 0, 2] = NO_ANSWER, False
    rows = split_four_ways(plain, 0, NOBODY_CHOOSES).prove
    (note,) = (
        note
        for note in _notes(replace(plain, answer=answer, correct=correct), asked)
        if "gave no answer" in note
    )
    assert note == (
        f"large gave no answer to {silent[rows].sum()} of these {len(rows)} questions: {then}"
    )


def _notes(traces: TraceArrays, asked: Promise) -> tuple[str, ...]:
    return ft.recommend(questions(traces), asked).found.notes

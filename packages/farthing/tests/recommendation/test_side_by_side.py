"""Several methods proved side by side: who is proved at which share, on what, and who is taken."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from made_up_pool import asked_again, pool
from told_pool import COST_USD, records, traces

from farthing.methods.base import Dataset, Saveable, Silent
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.promises.certificate import BoolArray
from farthing.promises.chains import Chain
from farthing.promises.kinds.agreement import Agreement
from farthing.promises.kinds.parity import Parity, ParityPromise
from farthing.promises.statistics.cross_fitted import CrossFitted
from farthing.promises.statistics.paired_test import loss_p_value
from farthing.recommendation import candidates, trial
from farthing.recommendation.certify import Contender, Proved, prove_cheapest
from farthing.recommendation.cross_fit import thresholds_of
from farthing.recommendation.plan import Plan, plan_of
from farthing.recommendation.played import PlayedPolicy
from farthing.recommendation.recommend import recommend
from farthing.recommendation.selection import Selection, Trial
from farthing.recommendation.splits import (
    FourWaySplit,
    Roles,
    more_training,
    split_four_ways,
)
from farthing.recommendation.trial import select
from farthing.traces.arrays import IntArray, TraceArrays

SHARES = {
    "evidence-cascade": Fraction(3, 5),
    "pool-gain": Fraction(1, 4),
    "conformal-arbitrage": Fraction(3, 20),
}
LARGE = Parity("large", "0.05")
NOBODY_CHOOSES = Roles(choose=False, measure=False)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let those that have a share take part, and one that has none."""
    enter(monkeypatch, (*SHARES, "always"))


def enter(patch: pytest.MonkeyPatch, names: Sequence[str]) -> None:
    patch.setattr(candidates, "cards", lambda: [card(name) for name in names])


def planned(arrays: TraceArrays, asked: Promise = LARGE, holdout: int | None = None) -> Plan:
    parts = split_four_ways(arrays, 0, replace(NOBODY_CHOOSES, holdout=holdout))
    return plan_of(Dataset("made up", arrays), asked, 0, parts)


def selected(arrays: TraceArrays, asked: Promise = LARGE, holdout: int | None = None) -> Selection:
    return select(planned(arrays, asked, holdout), None, Silent())


# who is proved


@cache
def of_pool(n: int, kind: str) -> Selection:
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, (*SHARES, "always"))
        return selected(pool(n), PROMISES[kind])


PROMISES: dict[str, Promise] = {
    "parity": LARGE,
    "agreement": Agreement("large", "0.2"),
    "a gain": Parity("large", "-0.01"),
}


def places_changed(arrays: TraceArrays, rows: IntArray) -> TraceArrays:
    """Return questions on some of which the small and the large model change places."""

    def turned(values: Any) -> Any:
        found = values.copy()
        found[rows] = found[rows][..., ::-1]
        return found

    return replace(
        arrays,
        answer=turned(arrays.answer),
        correct=turned(arrays.correct),
        cost_nano=turned(arrays.cost_nano),
        signals={name: turned(values) for name, values in arrays.signals.items()},
    )


def decided(selection: Selection) -> list[object]:
    """Return all that was decided before anything was proved."""
    found: list[object] = [selection.curve, selection.skipped, selection.plan.reference]
    for one in selection.trials:
        assert isinstance(one.bundle.policy, Saveable)
        state, settings = one.bundle.policy.to_state()
        assert one.row is not None
        found.append((one.name, one.share, one.expected_usd, one.accuracy, one.latency_s))
        found.append((one.row.tolist(), settings))
        found.append({name: values.tolist() for name, values in state.items()})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROMISES)
@pytest.mark.parametrize("n", [600, pytest.param(3_200, marks=pytest.mark.slow)])
def test_questions_that_prove_decide_nothing_before(n: int, kind: str) -> None:
    """No trial, no share, no point and no order, nor how many more questions train."""
    before = of_pool(n, kind)
    assert (len(before.curve) > 1) == (n > 3_000)
    after = selected(places_changed(pool(n), before.plan.parts.prove), PROMISES[kind])
    assert decided(after) == decided(before)
    for one, other in zip(vars(before.plan.parts), vars(after.plan.parts), strict=True):
        assert getattr(before.plan.parts, one).tolist() == getattr(after.plan.parts, other).tolist()
    trained = selected(places_changed(pool(n), before.plan.parts.train), PROMISES[kind])
    assert decided(trained) != decided(before)


@pytest.mark.slow
@pytest.mark.parametrize(("proving", "names"), [(99, 1), (199, 1), (200, 2), (299, 2), (300, 3)])
def test_as_many_are_proved_as_proving_questions_allow(proving: int, names: int) -> None:
    """A hundred for each; where that is one, it is the one that is expected to cost least."""
    selection = selected(pool(600), holdout=420 - proving)
    assert selection.plan.sizes()["prove"] == proving
    contenders = selection.contenders()
    assert len(contenders) == names
    assert sum(each.asked.share for _, each in contenders) == 1
    if names == 1:
        assert contenders[0][0] == selection.trials[0]
        return
    first = dict(list(SHARES.items())[:names])
    whole = sum(first.values())
    assert {one.name: one.share for one, _ in contenders} == {
        name: share / whole for name, share in first.items()
    }
    assert [one.share for one, _ in contenders] == sorted(
        (one.share for one, _ in contenders), reverse=True
    )
    rest = [one.share for one in selection.trials if one.name not in first]
    assert rest == [0] * len(rest)


@pytest.mark.slow
def test_nobody_is_trained_who_is_not_proved() -> None:
    """Others are tried only where one alone is proved, or none of those with a share can run."""
    assert {one.name for one in selected(pool(600)).trials} == SHARES.keys()
    assert len(selected(pool(600), holdout=230).trials) > len(SHARES)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.009", "0.014", "0.05"])
def test_no_share_is_below_what_a_point_without_loss_needs(epsilon: str) -> None:
    """Fewer share delta then, by the number of proving questions alone."""
    selection = selected(pool(600), Parity("large", epsilon), holdout=170)
    contenders = [contender for _, contender in selection.contenders()]
    assert selection.plan.sizes()["prove"] == 250
    assert sum(contender.asked.share for contender in contenders) == 1
    assert len(contenders) == (2 if epsilon == "0.05" else 1)
    if len(contenders) > 1:
        assert all(contender.asked.allows(250)(0) >= 0 for contender in contenders)
    else:
        small = selection.plan.asked.sharing(Fraction(5, 17))
        assert small.allows(250)(0) < 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_permuting_what_came_of_proving_questions_leaves_every_chain_equal(seed: int) -> None:
    """Start, order, points and shares are fixed before anybody reads a grade that proves."""
    arrays, before = pool(600), of_pool(600, "parity")
    rows = before.plan.parts.prove
    mixed = np.random.default_rng(seed).permutation(rows)

    def permuted(values: Any) -> Any:
        found = values.copy()
        found[rows] = found[mixed]
        return found

    after = selected(
        replace(
            arrays,
            answer=permuted(arrays.answer),
            correct=permuted(arrays.correct),
            cost_nano=permuted(arrays.cost_nano),
            signals={name: permuted(values) for name, values in arrays.signals.items()},
        )
    )
    assert decided(after) == decided(before)


def test_where_none_of_them_can_run_the_cheapest_expected_is_proved_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enter(monkeypatch, ("always", "agreement-cascade"))
    selection = selected(pool(600))
    ((only, contender),) = selection.contenders()
    assert only == selection.trials[0]
    assert only.expected_usd == min(one.expected_usd for one in selection.trials)
    assert only.share == contender.asked.share == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROMISES)
def test_a_proof_begins_at_the_dearest_point_of_use(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """That is one that costs less than the reference on training questions left out.

    Where accuracy must rise any point is of use, and it is the likeliest.
    """
    begun: list[tuple[CrossFitted, float, BoolArray, int]] = []
    start = CrossFitted.start

    def noting(self: CrossFitted, margin: float, useful: BoolArray, proving: int) -> int:
        begun.append((self, margin, useful, start(self, margin, useful, proving)))
        return begun[-1][-1]

    monkeypatch.setattr(CrossFitted, "start", noting)
    selection = selected(pool(600), PROMISES[kind])
    begun = begun[-len(selection.trials) :]  # before, more might have trained
    lengths = []
    for one in selection.trials:
        plays = PlayedPolicy(one.bundle.policy, one.bundle.empty)
        row = thresholds_of(plays, selection.plan.training(one.bundle))
        assert one.row is not None
        assert one.row.tolist() == row[: len(one.row)].tolist()
        lengths.append(len(one.row))
    assert sorted(lengths) == sorted(place + 1 for *_, place in begun)
    for figures, margin, useful, place in begun:
        if kind == "a gain":
            assert useful.all()
            continue
        assert margin > 0
        assert useful.tolist() == (figures.cost < 1).tolist()
        assert place == (np.flatnonzero(figures.cost < 1)[-1] if useful.any() else 0)
    for one, contender in selection.contenders():
        assert contender.laid_out is not None
        assert contender.laid_out.row is one.row


# who is taken


@pytest.mark.slow
def test_the_cheapest_of_those_proved_is_taken_and_each_says_at_which_share() -> None:
    """By its cost on the questions that prove; what it was expected to cost does not matter."""
    found = recommend(Dataset("made up", pool(600)), LARGE)
    contenders = of_pool(600, "parity").contenders()
    place, proofs, notes = prove_cheapest([each for _, each in contenders])
    costs = [mean_cost(proof) for proof in proofs if proof.certificate.promises]
    assert len(costs) > 1
    assert found.name == contenders[place][0].name
    assert mean_cost(proofs[place]) == min(costs)
    promise = found.bundle.certificate and found.bundle.certificate.promise
    assert isinstance(promise, ParityPromise)
    chains = {chain.name: chain.share for chain in promise.chains}
    assert chains == SHARES == {one.name: one.share for one in found.trials if one.share}
    shares = {one["method"]: one["share"] for one in found.to_json()["candidates"]}
    assert {name: share for name, share in shares.items() if share} == {
        name: float(share) for name, share in SHARES.items()
    }
    assert promise.delta == Fraction(1, 10)
    assert promise.own_delta >= SHARES[found.name] * promise.delta
    assert notes == [note for note in found.notes if note.startswith("proved side by side")]


def mean_cost(proof: Proved) -> float:
    """Return what a question cost on those that proved it."""
    assert proof.bundle.value is not None
    return proof.bundle.value.yours.cost_usd


def planted(lost: int) -> list[tuple[Trial, Contender]]:
    """Return contenders at half of delta: small loses nothing, medium on some that prove."""
    n = 400
    plain = traces(records("q", {role: [True] * n for role in COST_USD})).arrays
    rows = split_four_ways(plain, 0, NOBODY_CHOOSES).prove[:lost]
    right = {role: np.ones(n, dtype=bool) for role in COST_USD}
    right["medium"][rows] = False
    known = traces(records("q", {role: values.tolist() for role, values in right.items()}))
    with pytest.MonkeyPatch.context() as patch:
        enter(patch, ("always",))
        selection = selected(known.arrays)
    shares = {"always-small": Fraction(1, 2), "always-medium": Fraction(1, 2)}
    shared = tuple(
        replace(one, share=shares.get(one.name, Fraction(0))) for one in selection.trials
    )
    return replace(selection, trials=shared).contenders()


@pytest.mark.slow
def test_a_share_passes_on_where_every_point_is_proved() -> None:
    """Medium is proved with all of delta, not with half, and says so; small is cheaper."""
    n = 280
    lost = next(k for k in range(n) if loss_p_value(k + 1, 0, n, 0.05) > 0.1)
    assert 0.05 < loss_p_value(lost, 0, n, 0.05) <= 0.1
    contenders = {one.name: each for one, each in planted(lost)}
    alone = prove_cheapest([contenders["always-medium"]])[1][0]
    assert alone.falls_back
    names = ["always-medium", "always-small"]
    place, proofs, _ = prove_cheapest([contenders[name] for name in names])
    assert names[place] == "always-small"
    for proof, share in zip(proofs, (Fraction(1), Fraction(1, 2)), strict=True):
        promise = proof.certificate.promise
        assert proof.certificate.promises
        assert isinstance(promise, ParityPromise)
        assert promise.delta_share == share
        assert promise.chains == tuple(
            Chain(name=name, share=Fraction(1, 2), passed=True) for name in names
        )
    more = {one.name: each for one, each in planted(lost + 1)}
    place, proofs, _ = prove_cheapest([more[name] for name in names])
    assert [proof.certificate.promises for proof in proofs] == [False, True]
    assert place == 1
    said = proofs[1].certificate.sentence()
    assert "It was one of 2 candidates, proved at 0.5 of what may fail." in said
    assert "Every point of always-small is proved, so that its 0.5 of it passed" in said


@pytest.mark.slow
def test_where_nothing_is_proved_the_reference_answers_and_no_share_is_said() -> None:
    found = recommend(Dataset("made up", pool(600)), Agreement("large", "0.0001"))
    assert found.name == "always-large"
    assert found.nothing_cheaper
    assert found.certificate is not None
    assert not found.certificate.promises
    assert "so large answers, which is always valid" in found.certificate.sentence()
    assert "candidates" not in found.certificate.sentence()
    assert (found.to_json()["saved"], found.kept) == (0.0, True)
    assert sum(one.share for one in found.trials) == 1


# how many train


def outside(parts: FourWaySplit, arrays: TraceArrays) -> int:
    sizes = parts.distinct(arrays.content)
    return sizes["train"] + sizes["prove"] - 300


@pytest.mark.parametrize("n", [2_600, 4_000, 9_000])
@pytest.mark.parametrize("times", [1, 2])
def test_more_train_step_by_step_and_all_else_stays(n: int, times: int) -> None:
    """Disjoint, by doubling, up to 1,500 and three tenths; those that ask the same together."""
    arrays = pool(n) if times == 1 else asked_again(pool(n), times)
    first = parts = split_four_ways(arrays, 0, NOBODY_CHOOSES)
    most = min(1_500, 300 + int(0.3 * outside(parts, arrays)))
    numbers = [300]
    while (more := more_training(parts, arrays, 7)) is not None:
        assert not np.intersect1d(more.train, more.prove).size
        assert np.union1d(more.train, more.prove).tolist() == (
            np.union1d(parts.train, parts.prove).tolist()
        )
        assert np.isin(parts.train, more.train).all()
        assert (more.choose.size, more.report.tolist()) == (0, first.report.tolist())
        if times > 1:
            content = arrays.content
            assert not set(content[more.train]) & set(content[more.prove])
            assert len(more.train) == times * more.distinct(content)["train"]
        numbers.append(more.distinct(arrays.content)["train"])
        parts = more
    doubled = [min(2 * before, most) for before in numbers[:-1]]
    assert numbers[1:] == doubled
    assert most - 5 < numbers[-1] <= most
    again = more_training(first, arrays, 7)
    assert again is not None
    assert again.train.tolist() == more_training(first, arrays, 7).train.tolist()  # type: ignore[union-attr]
    assert again.train.tolist() != more_training(first, arrays, 8).train.tolist()  # type: ignore[union-attr]


@pytest.mark.parametrize(("n", "some"), [(2_299, False), (2_300, True)])
def test_with_fewer_than_two_thousand_beside_the_first_no_more_train(n: int, some: bool) -> None:
    arrays = pool(n)
    parts = split_four_ways(arrays, 0, replace(NOBODY_CHOOSES, holdout=0))
    assert (more_training(parts, arrays, 0) is not None) == some


def test_what_is_marked_to_calibrate_goes_on_proving() -> None:
    """Copies of it too, which nobody marked; where all is marked, nothing moves."""
    arrays = asked_again(pool(3_000), 2)
    split = np.full(len(arrays), -1, dtype=np.int8)
    _, first = np.unique(arrays.content, return_index=True)
    split[first[:1_000]] = 1
    marked = replace(arrays, split=split)
    parts = split_four_ways(marked, 0, NOBODY_CHOOSES)
    kept = np.intersect1d(
        parts.prove, np.flatnonzero(np.isin(arrays.content, arrays.content[first[:1_000]]))
    )
    assert len(kept) > 1_000
    more = more_training(parts, marked, 0)
    assert more is not None
    assert len(more.train) > len(parts.train)
    assert np.isin(kept, more.prove).all()
    every = replace(arrays, split=np.resize(np.array([0, 1], dtype=np.int8), len(arrays)))
    every = replace(every, content=np.zeros_like(arrays.content))
    parts = split_four_ways(every, 0, replace(NOBODY_CHOOSES, holdout=0))
    assert more_training(parts, every, 0) is None


@pytest.mark.parametrize(
    ("costs", "trained"),
    [
        ({300: 1.0, 600: 0.9, 1_200: 0.8, 1_500: 0.7}, [300, 600, 1_200, 1_500]),
        ({300: 1.0, 600: 1.02, 1_200: 1.04, 1_500: 1.07}, [300, 600, 1_200, 1_500]),
        ({300: 1.0, 600: 1.04}, [300, 600]),
        ({300: 1.0, 600: 0.5, 1_200: 0.52}, [300, 600, 1_200]),
    ],
)
def test_more_train_until_that_costs_more(
    monkeypatch: pytest.MonkeyPatch, costs: dict[int, float], trained: list[int]
) -> None:
    """By more than 3 %, of what is likely to be cheapest; whoever trained then trains all."""
    before = planned(pool(6_000))
    own = [one for one in trial._candidates(before) if trial._rehearses(one)]
    assert [one.name for one in own] == ["evidence-cascade"]
    stub = of_pool(600, "parity").trials[0]

    def estimate(plan: Plan, _: object) -> Trial:
        return replace(stub, expected_usd=costs[plan.sizes()["train"]])

    monkeypatch.setattr(trial, "estimate_trial", estimate)
    plan, curve, known = trial._with_more_training(before, own)
    assert known["evidence-cascade"].expected_usd == costs[trained[-1]]
    assert curve == [(n, costs[n]) for n in trained]
    assert plan.sizes()["train"] == trained[-1]
    assert plan.sizes()["train"] + plan.sizes()["prove"] == 5_500


@pytest.mark.slow
def test_a_recommendation_says_what_more_training_brought() -> None:
    found = recommend(Dataset("made up", pool(3_200)), LARGE)
    numbers = [n for n, _ in found.curve]
    assert numbers[:2] == [300, 600]
    assert found.sizes["train"] == numbers[-1]
    assert sum(found.sizes.values()) == 3_200
    assert (found.sizes["report"], found.held_out) == (320, True)
    assert found.to_json()["training"] == [
        {"questions": n, "cost_usd": cost} for n, cost in found.curve
    ]
    assert found.certificate is not None
    assert found.certificate.n == found.sizes["prove"]

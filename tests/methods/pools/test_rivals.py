"""What holds for every rival: money, what a decision may see, seeds, and the limit."""

import numpy as np
import pytest
from farthing.methods.cascades.micp.policy import MiCP
from farthing.methods.cascades.trust_or_escalate.policy import TrustOrEscalate
from farthing.methods.lookahead.pool import PoolLookahead
from farthing.methods.routers.embedding import Embedding

from farthing.errors import InputError
from farthing.methods.baselines.models import AlwaysAll, BestSingle, Oracle
from farthing.methods.cascades.auto_mix.policy import AutoMix
from farthing.methods.cascades.conformal_arbitrage.policy import ConformalArbitrage
from farthing.methods.cascades.frugal_gpt.policy import FrugalGpt
from farthing.methods.cascades.ucci.policy import Ucci
from farthing.methods.pool import Rival, frontier
from farthing.methods.routers.cascade_routing.policy import CascadeRouting
from farthing.methods.routers.pool_cover.policy import PoolCover
from farthing.methods.routers.pool_gain.policy import PoolGain
from farthing.methods.routers.route_llm.policy import RouteLlm
from farthing.process.operating_points import OperatingPoints
from farthing.traces.arrays import NO_ANSWER, TraceArrays

N, L = 600, 4
PRICE = np.array([1, 2, 4, 8]) * 10**6


def pool(n: int = N, seed: int = 0) -> TraceArrays:
    """Four models whose prices are powers of two, so that a total names the calls in it.

    Easy questions (even ids' vectors say so) are solved by all; on hard ones only the last model
    is good. A model is confident where it is right, mostly.
    """
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.5
    skill = np.where(hard[:, None], [0.25, 0.3, 0.4, 0.9], [0.8, 0.9, 0.95, 0.97])
    right = rng.random((n, L)) < skill
    wrong = rng.integers(1, 4, size=(n, L))
    confidence = np.clip(np.where(right, 0.85, 0.5) + rng.normal(0, 0.1, (n, L)), 0.02, 0.98)
    return TraceArrays(
        ids=np.array([f"{seed}-{i}-{'hard' if h else 'easy'}" for i, h in enumerate(hard)]),
        roles=tuple("abcd"),
        models=tuple("abcd"),
        answer=np.where(right, 0, wrong)[:, None, :].astype(np.int16),
        correct=right[:, None, :],
        cost_nano=np.tile(PRICE, (n, 1))[:, None, :],
        signals={"confidence": confidence[:, None, :].astype(np.float32)},
        group=np.full(n, -1, dtype=np.int32),
        group_names=(),
        split=np.full(n, -1, dtype=np.int8),
        recorded=np.ones(n, dtype=np.int16),
        independent=np.ones(n, dtype=bool),
    )


TRAIN, TEST = pool(seed=0), pool(seed=1)
VECTORS = {
    name: np.array([1.0, 0.1]) if name.endswith("hard") else np.array([0.1, 1.0])
    for name in [*TRAIN.ids.tolist(), *TEST.ids.tolist()]
}
EMBEDDING = Embedding("planted", VECTORS)
HONEST: dict[str, Rival] = {
    "AlwaysAll": AlwaysAll(),
    "AutoMix": AutoMix(),
    "BestSingle": BestSingle(),
    "CascadeRouting": CascadeRouting(),
    "ConformalArbitrage": ConformalArbitrage(),
    "FrugalGpt": FrugalGpt(),
    "MiCP": MiCP(),
    "PoolCover": PoolCover(),
    "PoolGain": PoolGain(),
    "PoolLookahead": PoolLookahead(),
    "RouteLlm similarity": RouteLlm(EMBEDDING, "similarity"),
    "RouteLlm factorisation": RouteLlm(EMBEDDING, "factorisation"),
    "TrustOrEscalate": TrustOrEscalate(),
    "Ucci": Ucci(),
}
MENUS = {name: rival.fit(TRAIN, 0).points(TEST) for name, rival in HONEST.items()}
every_rival = pytest.mark.parametrize("name", HONEST)


def calls_made(menu: OperatingPoints) -> np.ndarray:
    """[n, G, L] read from the price, which only one set of calls can have."""
    return np.asarray((menu.cost_nano[:, :, None] // PRICE) % 2 == 1)


@every_rival
def test_the_price_is_that_of_calls_that_gave_the_answer(name: str) -> None:
    menu = MENUS[name]
    made = calls_made(menu)
    for i in range(0, N, 37):
        for g in range(menu.n_points):
            paid = [m for m in range(L) if made[i, g, m]]
            assert menu.cost_nano[i, g] == sum(int(PRICE[m]) for m in paid)
            assert menu.covered[i, g] == any(TEST.correct[i, 0, m] for m in paid)
            assert menu.covered[i, g] or not menu.correct[i, g]
            assert menu.answered[i, g]


def quiet(traces: TraceArrays) -> TraceArrays:
    """The same questions; many replies hold no answer."""
    silent = np.random.default_rng(8).random(traces.answer.shape) < 0.4
    answer = np.where(silent, NO_ANSWER, traces.answer).astype(np.int16)
    return TraceArrays(**{**vars(traces), "answer": answer, "correct": traces.correct & ~silent})


@every_rival
@pytest.mark.parametrize("test", [TEST, quiet(TEST)], ids=["answers", "silences"])
def test_no_decision_sees_a_call_that_was_not_made(name: str, test: TraceArrays) -> None:
    rival = HONEST[name].fit(TRAIN, 0)
    menu = rival.points(test)
    rng = np.random.default_rng(5)
    for g in range(0, menu.n_points, max(menu.n_points // 4, 1)):
        unmade = ~calls_made(menu)[:, g][:, None, :]
        other = rng.integers(0, 4, test.answer.shape)
        changed = TraceArrays(
            **{
                **vars(test),
                "answer": np.where(unmade, other, test.answer).astype(np.int16),
                "correct": np.where(unmade, other == 0, test.correct),
                "signals": {
                    "confidence": np.where(
                        unmade, rng.random(unmade.shape), test.signals["confidence"]
                    ).astype(np.float32)
                },
            }
        )
        again = rival.points(changed)
        np.testing.assert_array_equal(again.cost_nano[:, g], menu.cost_nano[:, g])
        np.testing.assert_array_equal(again.correct[:, g], menu.correct[:, g])


@every_rival
def test_no_rival_beats_foresight(name: str) -> None:
    price = np.where(TEST.correct[:, 0], PRICE, 2**60).min(axis=1)
    cheapest = np.concatenate([[0], np.cumsum(np.sort(price[price < 2**60]))])
    menu = MENUS[name]
    for g in range(menu.n_points):
        assert menu.cost_nano[:, g].sum() >= cheapest[menu.correct[:, g].sum()]


def test_foresight_is_on_that_limit() -> None:
    menu = Oracle().fit(TRAIN, 0).points(TEST)
    price = np.where(TEST.correct[:, 0], PRICE, 2**60).min(axis=1)
    cheapest = np.concatenate([[0], np.cumsum(np.sort(price[price < 2**60]))])
    for g in range(menu.n_points):
        assert menu.cost_nano[:, g].sum() == cheapest[menu.correct[:, g].sum()]
    np.testing.assert_array_equal(menu.correct[:, -1], TEST.solvable)


@every_rival
def test_a_seed_makes_the_same_menu_again(name: str) -> None:
    again, menu = HONEST[name].fit(TRAIN, 0).points(TEST), MENUS[name]
    np.testing.assert_array_equal(again.values, menu.values)
    np.testing.assert_array_equal(again.cost_nano, menu.cost_nano)
    np.testing.assert_array_equal(again.correct, menu.correct)


@every_rival
def test_a_question_is_answered_as_it_would_be_alone(name: str) -> None:
    menu, alone = MENUS[name], HONEST[name].fit(TRAIN, 0).points(TEST.take(np.array([7])))
    np.testing.assert_array_equal(alone.cost_nano[0], menu.cost_nano[7])
    np.testing.assert_array_equal(alone.correct[0], menu.correct[7])


@pytest.mark.parametrize("name", [n for n in HONEST if n not in {"AlwaysAll", "BestSingle"}])
def test_confidence_or_difficulty_saves_money_at_the_best_models_accuracy(name: str) -> None:
    """The planted pool: the last model alone costs 8 and is right on about 0.93."""
    menu = MENUS[name]
    cost, right = menu.cost_nano.mean(axis=0) / 10**6, menu.correct.mean(axis=0)
    near = right >= TEST.correct[:, 0, 3].mean() - 0.05
    assert cost[near].min() < 7.0


@every_rival
def test_rounds_are_refused(name: str) -> None:
    two = TraceArrays(
        **{
            **vars(TRAIN),
            "answer": np.repeat(TRAIN.answer, 2, axis=1),
            "correct": np.repeat(TRAIN.correct, 2, axis=1),
            "cost_nano": np.repeat(TRAIN.cost_nano, 2, axis=1),
        }
    )
    with pytest.raises(InputError, match="pool"):
        HONEST[name].fit(two, 0)


def test_a_missing_model_is_free_and_says_nothing() -> None:
    lacking = TraceArrays(
        **{
            **vars(TEST),
            "answer": np.where(np.arange(L) == 3, NO_ANSWER, TEST.answer).astype(np.int16),
            "correct": np.where(np.arange(L) == 3, False, TEST.correct),
            "cost_nano": np.where(np.arange(L) == 3, 0, TEST.cost_nano),
        }
    )
    menu = AlwaysAll().fit(TRAIN, 0).points(lacking)
    assert (menu.cost_nano == 7 * 10**6).all()
    assert menu.answered.all()


def test_the_frontier_against_a_slow_look() -> None:
    rng = np.random.default_rng(3)
    cost, gain = rng.integers(0, 9, 40).astype(float), rng.integers(0, 9, 40).astype(float)
    kept = frontier(cost, gain)
    assert (np.diff(cost[kept]) > 0).all()
    for i in range(40):
        assert any(cost[k] <= cost[i] and gain[k] >= gain[i] for k in kept)


def only(traces: TraceArrays, models: int) -> TraceArrays:
    """The first models alone, without any signal."""
    return TraceArrays(
        **{
            **vars(traces),
            "roles": traces.roles[:models],
            "models": traces.models[:models],
            "answer": traces.answer[:, :, :models],
            "correct": traces.correct[:, :, :models],
            "cost_nano": traces.cost_nano[:, :, :models],
            "signals": {},
        }
    )


@every_rival
@pytest.mark.parametrize("models", [1, 2])
def test_small_pools_without_signals_are_no_obstacle(name: str, models: int) -> None:
    menu = HONEST[name].fit(only(TRAIN, models), 0).points(only(TEST, models))
    assert menu.n_points > 0
    assert (menu.cost_nano <= PRICE[:models].sum()).all()
    assert menu.answered.all()


@every_rival
def test_models_that_are_always_right_are_no_obstacle(name: str) -> None:
    perfect = TraceArrays(
        **{
            **vars(TRAIN),
            "answer": np.zeros_like(TRAIN.answer),
            "correct": np.ones_like(TRAIN.correct),
        }
    )
    menu = HONEST[name].fit(perfect, 0).points(TEST)
    assert (menu.cost_nano.sum(axis=1) > 0).all()


def test_micp_spends_its_budgets_to_the_last_question() -> None:
    """With 58 questions and a next one, budgets of k / 118 are whole numbers for every other k.

    As binary fractions some of them fall just short of it.
    """
    train = pool(58)
    turns = MiCP().fit(train, 0)
    score = turns.scorers.p_right(train)[:, turns.models[0]]
    wrong = np.sort(score[~train.correct[:, 0, turns.models[0]]])[::-1]
    assert len(turns.knobs) == 60
    for k, threshold in zip(range(59, -1, -1), turns.thresholds[:, 0], strict=True):
        allowed = k // (2 * (len(turns.models) - 1)) - 1  # the next question is one of them
        assert (wrong >= threshold).sum() == np.clip(allowed, 0, len(wrong))


def test_the_levels_of_trust_are_exact() -> None:
    """Each is the number nearest to its fraction, and at 0 nobody is trusted."""
    turns = TrustOrEscalate().fit(TRAIN, 0)
    np.testing.assert_array_equal(turns.knobs, [3 * k / 295 for k in range(59, -1, -1)])
    assert np.isinf(turns.thresholds[-1]).all()

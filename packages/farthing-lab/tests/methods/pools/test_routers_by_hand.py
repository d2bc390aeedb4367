"""One decision of each router over a pool, worked out by hand from its formula."""

from fractions import Fraction

import numpy as np
import pytest
from small_pool import CENT, paid, small_pool, taught

from farthing.methods.base import Silent
from farthing.methods.baselines.models import AlwaysAllLearner, AlwaysLearner, BestSingleLearner
from farthing.methods.routers.pool_gain import PoolGainLearner
from farthing.methods.scorer import Scorers
from farthing.process.batch_replay import NestedReplay, replay
from farthing.traces.arrays import TraceArrays
from farthing_lab.methods.bayesian_judges import Judges, OpinionsPolicy
from farthing_lab.methods.estimators.v0 import Directions
from farthing_lab.methods.lookahead.single import LazySingleLearner
from farthing_lab.methods.routers.odar.learner import OdarLearner
from farthing_lab.methods.routers.pool_cover import PoolCoverLearner
from farthing_lab.methods.routers.route_llm import RouteLlmLearner
from farthing_lab.methods.routers.v0 import V0Policy

RIGHT, WRONG, OTHER = 0, 1, 2


def columns(*models: list[int]) -> list[list[int]]:
    """Return what each model says, question by question."""
    return [list(row) for row in zip(*models, strict=True)]


def test_the_best_single_models_are_those_that_no_cheaper_one_matches() -> None:
    """Right on 5, 4, 7, 7 and 8 of 10, for 1 to 5 cents: the second and fourth fall out."""
    train = small_pool(
        columns(*([RIGHT] * n + [WRONG] * (10 - n) for n in (5, 4, 7, 7, 8))), [1, 2, 3, 4, 5]
    )
    policy = taught(BestSingleLearner(), train)
    points = policy.points(train)
    assert [paid(points, at)[0] for at in range(points.n_points)] == [1.0, 3.0, 5.0]
    assert points.correct.sum(axis=0).tolist() == [5, 7, 8]


def test_always_is_the_most_accurate_model_and_of_equals_the_first() -> None:
    train = small_pool(columns([RIGHT, WRONG], [RIGHT, RIGHT], [RIGHT, RIGHT]), [1, 5, 2])
    points = taught(AlwaysLearner(), train).points(train)
    assert paid(points, 0) == [5.0, 5.0]
    assert points.correct.tolist() == [[True], [True]]


def test_two_votes_beat_a_better_one_where_their_weights_add_up_to_more() -> None:
    """Of 9 questions a has 8 right, b and c 6 each. No two are wrong at once: K = 1 + 1 / 0.5 = 3.

    p = 8.5 / 10 = 0.85 and 6.5 / 10 = 0.65. Weights log(p (K - 1) / (1 - p)): log(11.3) = 2.43 and
    2 log(3.71) = 2.62, so b and c together win. (By the log-odds, K = 2, it would be 1.73 to 1.24.)
    With 5 right, p = 0.55, it is 2 log(2.44) = 1.79: a wins, though two votes are more than one.
    """
    by_a = [WRONG] + [RIGHT] * 8
    by_b = [RIGHT] + [WRONG] * 3 + [RIGHT] * 5
    by_c = [RIGHT] * 4 + [WRONG] * 3 + [RIGHT] * 2
    said = small_pool([[WRONG, RIGHT, RIGHT], [RIGHT, WRONG, WRONG]], [1, 2, 3])
    points = taught(AlwaysAllLearner(), small_pool(columns(by_a, by_b, by_c), [1, 2, 3])).points(
        said
    )
    assert points.correct.tolist() == [[True, True], [False, False]]
    assert paid(points, 0) == paid(points, 1) == [6.0, 6.0]
    by_b = [RIGHT] + [WRONG] * 4 + [RIGHT] * 4
    by_c = [RIGHT] * 5 + [WRONG] * 4
    points = taught(AlwaysAllLearner(), small_pool(columns(by_a, by_b, by_c), [1, 2, 3])).points(
        said
    )
    assert points.correct.tolist() == [[True, False], [False, True]]


TEXTS = ("capital", "theorem", "river")


def routed(kind: str) -> TraceArrays:
    """Return questions: the strong model b alone is right on the first, a alone on the third."""
    answers = columns([WRONG, RIGHT, RIGHT], [RIGHT, RIGHT, WRONG])
    return small_pool(answers, [1, 10], question=TEXTS)


def test_route_llm_weighs_training_questions_by_their_likeness() -> None:
    """b wins 1, 1/2 and 0 on three questions without a word in common. A weight is 10^(1 + near):

    100 for the same question and 10 for the others. capital: (100 + 5 + 0) / 120 = 0.875; theorem:
    (10 + 50 + 0) / 120 = 0.5; river: (10 + 5 + 0) / 120 = 0.125. "capital abroad" is near to
    capital alone, and nearness is measured by the nearest: 0.875 again, though only a third of the
    words and pairs are the same.
    """
    train = routed("similarity")
    policy = taught(RouteLlmLearner(strong="b"), train)
    win = {0.875: 1, 0.5: 2, 0.125: 3}
    for value, strong in win.items():
        [at] = np.flatnonzero(np.isclose(policy.values, value))
        assert paid(policy.points(train), int(at)) == [10.0] * strong + [1.0] * (3 - strong)
    alike = small_pool([[RIGHT, WRONG]], [1, 10], question=["capital abroad"])
    asked = [paid(policy.points(alike), at)[0] for at in range(len(policy.values))]
    assert asked == [10.0] * len(policy.values)


def test_route_llm_factorisation_learns_one_weight_a_word_from_clear_outcomes() -> None:
    """Without a constant each of two words has its own weight w: least w^2 / 2 + 0.3 log(1 + e^-w).

    w = 0.3 / (1 + e^w) = 0.1396: b wins capital with 1 / (1 + e^-w) = 0.5348, river with 0.4652,
    and theorem, a tie that teaches nothing, with 1/2.
    """
    policy = taught(RouteLlmLearner("factorisation", "b"), routed("factorisation"))
    np.testing.assert_allclose(policy.values[[0, -2]], [0.5348, 0.4652], atol=1e-4)
    assert np.isclose(policy.values, 0.5).any()
    assert paid(policy.points(routed("factorisation")), 0) == [10.0, 1.0, 1.0]


def test_route_llm_asks_first_whom_it_saves_most_money_for_each_answer_lost() -> None:
    """c costs 10 and is right on all 10. a: (10 - 1) / (0.5 + 0.01) = 17.6; b: 8 / 0.11 = 72.7."""
    train = small_pool(
        columns([RIGHT] * 5 + [WRONG] * 5, [RIGHT] * 9 + [WRONG], [RIGHT] * 10),
        [1, 2, 10],
        question=["theorem"] * 9 + ["river"],
    )
    points = taught(RouteLlmLearner(), train).points(train)
    assert {cost for at in range(points.n_points) for cost in paid(points, at)} == {2.0, 10.0}


def test_pool_gain_goes_on_while_the_answers_lost_are_worth_more_than_the_price() -> None:
    """a loses 4 of 20 answers against b; nothing tells which: going on gains 0.2 less the price.

    Prices are shares of the answers that a call of b is worth.
    """
    train = small_pool(columns([RIGHT] * 16 + [WRONG] * 4, [RIGHT] * 20), [0.1, 10])
    policy = taught(PoolGainLearner(), train)
    points = policy.points(train)
    for at, price in enumerate(policy.values.tolist()):
        assert paid(points, at)[0] == (0.1 if price > 0.2 else 10.1), price
    assert points.correct.sum(axis=0).tolist() == [16 if p > 0.2 else 20 for p in policy.values]


def test_pool_gain_counts_a_win_for_a_quarter_of_a_loss() -> None:
    """Before c, a loses 1 of 40 answers and wins none: 0.025. b loses 1 and wins 6: -0.0125."""
    by_a = [WRONG] + [RIGHT] * 33 + [WRONG] * 6
    by_b = [RIGHT, WRONG] + [RIGHT] * 38
    by_c = [RIGHT] * 34 + [OTHER] * 6
    train = small_pool(columns(by_a, by_b, by_c), [0.1, 0.11, 10])
    policy = taught(PoolGainLearner(strong="c"), train)
    assert paid(policy.points(train), 0) == [0.11] * 40


def test_pool_cover_asks_next_who_solves_most_that_is_new_for_a_dollar() -> None:
    """Of 12 questions a solves 4 for 1 cent, b 6 others for 2, c 1 for 1.5, and d 3 of a's for 0.9.

    a first (4 a cent), then b (3), then c (0.67), and d last, which adds nothing. After a, 7 of 12
    are left to gain, 7 / 12 / 2 = 0.292 a cent; the twelfth nobody gains. After b, 1 / 12 / 1.5 =
    0.0556; after c nothing, which counts for half a question of 13: 0.5 / 13 / 0.9 = 0.0427.
    """
    solves = (range(4), range(4, 10), range(10, 11), range(3))
    by = ([RIGHT if i in mine else WRONG + k for i in range(12)] for k, mine in enumerate(solves))
    train = small_pool(columns(*by), [1, 2, 1.5, 0.9])
    policy = taught(PoolCoverLearner(), train)
    points = policy.points(train)
    for worth, cents in ((0.292, 1.0), (0.29, 3.0), (0.0557, 3.0), (0.0428, 4.5), (0.0425, 5.4)):
        later = np.flatnonzero(-policy.values <= worth * 100)
        assert paid(points, int(later[0])) == [cents] * 12, worth


def likely(p: list[float]) -> Scorers:
    """Return scorers for which each model is right with its own probability, whatever it says."""
    none, odds = np.zeros((0, len(p))), np.log(np.array(p) / (1 - np.array(p)))
    return Scorers((), none, none, odds[None])


def test_bayesian_orchestration_buys_an_opinion_that_is_worth_more_than_it_costs() -> None:
    """Two answers; a is right with 0.7, b with 0.9, and who is not says nothing half of the time.

    a says x: x has 0.7 against 0.3 / 2, so it is right with 0.7 / 0.85 = 0.8235. If b is asked, x
    wins with its word, 0.8235 x 0.9 = 0.7412, the other answer with its, 0.1765 x 0.9 = 0.1588, and
    x where b says nothing, 0.8235 x 0.1 / 2 = 0.0412: 0.9412, or 0.1176 more. b costs 1 cent, so it
    is asked where a wrong answer costs more than 1 / 0.1176 = 8.5 cents.
    """
    rate, one = np.array([[0.7], [0.9]]), np.ones((2, 2, 1))
    judges = Judges(
        likely([0.7, 0.9]), np.zeros((2, 0)), np.ones(1), rate, np.full(2, 0.5), one, 2.0
    )
    wrong_usd = np.array([0.084, 0.086])
    policy = OpinionsPolicy(judges, np.array([0.001, 0.01]), -1 / wrong_usd)
    points = policy.points(small_pool([[WRONG, RIGHT]], [0.1, 1]))
    assert [paid(points, at) for at in (0, 1)] == [[0.1], [1.1]]
    assert points.correct.tolist() == [[False, True]]  # 0.7 x 0.05 against 0.15 x 0.9


@pytest.mark.parametrize(("own", "beta"), [(0.0, 0.9 / 1.2808), (8 / np.pi, 0.9 / 1.2044)])
def test_v0_weighs_success_against_cost(own: float, beta: float) -> None:
    """Log-odds of 0 and 2 are 0.5 and 0.8808; a variance of 8 / pi divides them by sqrt(2): 0.8044.

    At shares of cost of 0.1 and 1, a is worth 0.5 beta + 0.9 (1 - beta) and b 0.8808 beta: b is
    asked from beta = 0.9 / (0.8808 + 0.4) on, or 0.9 / (0.8044 + 0.4).
    """
    directions = Directions(np.zeros((512, 0)), (), np.zeros(1), np.eye(1), own)
    values = beta + np.array([-0.001, 0.001])
    mode, spread = np.array([[0.0], [2.0]]), np.zeros((2, 1, 1))
    policy = V0Policy(directions, mode, spread, np.array([0.1, 1.0]), values)
    points = policy.points(small_pool([[RIGHT, RIGHT]], [1, 10], question=["word"]))
    assert [paid(points, at) for at in (0, 1)] == [[1.0], [10.0]]


def made_by_odar(learner: OdarLearner, wrong: int) -> list[float]:
    """Return the different costs, in cents, where the fast model is wrong on so many of 20."""
    by_a = [WRONG] * wrong + [RIGHT] * (20 - wrong)
    by_b = [OTHER] + [RIGHT] * 19
    by_c = [RIGHT] * 4 + [OTHER + 1] * 16
    train = small_pool(columns(by_a, by_b, by_c), [1, 2, 10])
    replayed = replay(learner.fit(train, Fraction(1, 10), 0, Silent()).policy, train)
    assert isinstance(replayed, NestedReplay)
    return sorted(set((replayed.act(0.3).cost_nano / CENT).tolist()))


@pytest.mark.parametrize(("wrong", "cents"), [(4, 1.0), (8, 3.0), (15, 13.0)])
def test_odar_makes_as_many_calls_as_the_difficulty_says(wrong: int, cents: float) -> None:
    """Nothing tells questions apart, so d is the share on which the fast model is wrong.

    0.2 is below the edge 0.3, 0.4 between the edges, and 0.75 beyond 0.7: one call, a second that
    checks it, and all there are. The fast model is the cheapest, the check the most accurate one.
    """
    assert made_by_odar(OdarLearner(), wrong) == [cents]


def test_odar_recheck_asks_no_further_where_the_check_has_settled_it() -> None:
    """After a alone d is 0.75. With b, which is right on 19 of 20 and believed, 0.05: two calls."""
    assert made_by_odar(OdarLearner(recheck=True), 15) == [3.0]


def test_lazy_single_answers_with_the_likelier_of_what_it_bought() -> None:
    """a first, with 0.5 a cent to b's 0.09; then b, which is right on 9 of 10, and is believed."""
    said = [[0, 0]] * 45 + [[0, 1]] * 5 + [[1, 0]] * 45 + [[1, 2]] * 5
    train = small_pool(said, [1, 10])
    points = taught(LazySingleLearner(), train).points(train)
    assert paid(points, 0) == [1.0] * 100
    assert paid(points, points.n_points - 1) == [11.0] * 100
    assert points.correct[:, [0, -1]].sum(axis=0).tolist() == [50, 90]
